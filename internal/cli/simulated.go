package cli

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bayplan/bayplan/api/v1alpha1"
	"github.com/bayplan/bayplan/internal/cluster"
	"github.com/bayplan/bayplan/internal/fleet"
	"github.com/bayplan/bayplan/internal/fleet/manifest"
)

// simulatedGroup is the group of the nodes that --sim-nodes asks for.
const simulatedGroup = "sim"

// simulatedOptions are those about simulated nodes.
type simulatedOptions struct {
	nodes       int
	file        string
	seed        uint64
	leasePeriod time.Duration
}

func (o *simulatedOptions) addFlags(flags *pflag.FlagSet) {
	flags.IntVar(&o.nodes, "sim-nodes", 0, "How many simulated nodes, "+simulatedGroup+"-1 and so on; they need no privileges. Those of former starts stay, see bayplan node.")
	flags.StringVar(&o.file, "sim-rules", "", "File of NodeGroup and PodBehavior objects: further simulated nodes, and what pods on simulated nodes do.")
	flags.Uint64Var(&o.seed, "sim-seed", 1, "Seed of what is left to chance on simulated nodes.")
	flags.DurationVar(&o.leasePeriod, "sim-lease-period", fleet.DefaultLeasePeriod, "Time between two heartbeats of a simulated node.")
}

func (o *simulatedOptions) validate() error {
	switch {
	case o.nodes < 0 || o.nodes > manifest.MaxNodes:
		return fmt.Errorf("--sim-nodes %d: must be from 0 to %d", o.nodes, manifest.MaxNodes)
	case o.leasePeriod != 0 && (o.leasePeriod < time.Second || o.leasePeriod > fleet.MaxLeasePeriod):
		return fmt.Errorf("--sim-lease-period %s: must be from 1s to %s, or nodes would count as lost", o.leasePeriod, fleet.MaxLeasePeriod)
	}
	return nil
}

// complete reads the file and says to the cluster what is simulated.
func (o *simulatedOptions) complete(config *cluster.Config) error {
	simulated := &cluster.Simulated{Seed: o.seed, LeasePeriod: o.leasePeriod}
	if o.nodes > 0 {
		simulated.Groups = append(simulated.Groups, v1alpha1.NodeGroup{
			ObjectMeta: metav1.ObjectMeta{Name: simulatedGroup}, Spec: v1alpha1.NodeGroupSpec{Count: int32(min(o.nodes, manifest.MaxNodes))},
		})
	}
	if o.file != "" {
		data, err := os.ReadFile(o.file)
		if err != nil {
			return fmt.Errorf("--sim-rules: %w", err)
		}
		objects, err := manifest.Read(data)
		if err != nil {
			return fmt.Errorf("--sim-rules: %s: %w", o.file, err)
		}
		simulated.Groups = append(simulated.Groups, objects.Groups...)
		simulated.Rules = objects.Rules
	}
	config.Simulated = simulated
	return nil
}
