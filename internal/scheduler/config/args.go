package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/bayplan/bayplan/internal/scheduler/cycle"
	"github.com/bayplan/bayplan/internal/scheduler/plugins/balancedallocation"
	"github.com/bayplan/bayplan/internal/scheduler/plugins/interpodaffinity"
	"github.com/bayplan/bayplan/internal/scheduler/plugins/nodeaffinity"
	"github.com/bayplan/bayplan/internal/scheduler/plugins/noderesourcesfit"
	"github.com/bayplan/bayplan/internal/scheduler/plugins/podtopologyspread"
	"github.com/bayplan/bayplan/internal/scheduler/plugins/volumebinding"
	"github.com/bayplan/bayplan/internal/scheduler/shape"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	configv1 "k8s.io/kube-scheduler/config/v1"
	"sigs.k8s.io/yaml"
)

// arguments are the plugins that take any, with theirs.
type arguments struct {
	affinity   nodeaffinity.Plugin
	fit        noderesourcesfit.Plugin
	balance    balancedallocation.Plugin
	spread     podtopologyspread.Plugin
	interPod   interpodaffinity.Plugin
	volumes    volumebinding.Plugin
	preemption cycle.Preemption
}

// readArgs reads the pluginConfig of a profile over the defaults.
func readArgs(field string, list []configv1.PluginConfig) (*arguments, error) {
	a := &arguments{
		spread: *podtopologyspread.New(), interPod: *interpodaffinity.New(), volumes: *volumebinding.New(),
		preemption: cycle.Preemption{MinCandidatePercentage: 10, MinCandidates: 100},
	}
	readers := map[string]func([]byte) error{
		nodeaffinity.Name: a.readAffinity, noderesourcesfit.Name: a.readFit, balancedallocation.Name: a.readBalance,
		podtopologyspread.Name: a.readSpread, interpodaffinity.Name: a.readInterPod, defaultPreemption: a.readPreemption,
		volumebinding.Name: a.readVolumes,
	}
	var problems []error
	seen := sets.New[string]()
	for _, each := range list {
		at := fmt.Sprintf("%s.pluginConfig[%s]", field, each.Name)
		read := readers[each.Name]
		switch {
		case seen.Has(each.Name):
			problems = append(problems, fmt.Errorf("%s: is given twice", at))
		case elsewhere[each.Name]:
			problems = append(problems, fmt.Errorf("%s: this scheduler does not have the plugin", at))
		case read == nil:
			problems = append(problems, fmt.Errorf("%s: there is no such plugin, or it takes no arguments", at))
		default:
			if err := read(each.Args.Raw); err != nil {
				problems = append(problems, fmt.Errorf("%s.args.%w", at, err))
			}
		}
		seen.Insert(each.Name)
	}
	return a, errors.Join(problems...)
}

// decode is strict: an unknown field is an error.
func decode(data []byte, into any) error {
	if len(data) == 0 {
		return nil
	}
	if !json.Valid(data) {
		return errors.New("(whole): is not valid")
	}
	if err := yaml.UnmarshalStrict(data, into); err != nil {
		return fmt.Errorf("(whole): %w", err)
	}
	return nil
}

func (a *arguments) readAffinity(data []byte) error {
	args := configv1.NodeAffinityArgs{}
	if err := decode(data, &args); err != nil || args.AddedAffinity == nil {
		return err
	}
	a.affinity.Added, a.affinity.AddedPreferred = shape.CompileNodeAffinity(args.AddedAffinity)
	if a.affinity.Added != nil && slices.ContainsFunc(a.affinity.Added.Terms, func(t shape.NodeTerm) bool { return t.Nothing }) {
		return errors.New("addedAffinity: a required term is empty or cannot be parsed")
	}
	return nil
}

func (a *arguments) readInterPod(data []byte) error {
	args := configv1.InterPodAffinityArgs{}
	if err := decode(data, &args); err != nil {
		return err
	}
	a.interPod.IgnorePreferredTermsOfExistingPods = args.IgnorePreferredTermsOfExistingPods
	if w := args.HardPodAffinityWeight; w != nil {
		if *w < 0 || *w > 100 {
			return fmt.Errorf("hardPodAffinityWeight: is %d, must be from 0 to 100", *w)
		}
		a.interPod.HardPodAffinityWeight = int64(*w)
	}
	return nil
}

func (a *arguments) readVolumes(data []byte) error {
	args := configv1.VolumeBindingArgs{}
	if err := decode(data, &args); err != nil {
		return err
	}
	if t := args.BindTimeoutSeconds; t != nil {
		if *t < 0 {
			return fmt.Errorf("bindTimeoutSeconds: is %d, must not be negative", *t)
		}
		a.volumes.Timeout = time.Duration(*t) * time.Second
	}
	if len(args.Shape) == 0 {
		return nil
	}
	points, err := readCurve("shape", args.Shape)
	a.volumes.Points = points
	return err
}

func (a *arguments) readPreemption(data []byte) error {
	args := configv1.DefaultPreemptionArgs{}
	if err := decode(data, &args); err != nil {
		return err
	}
	if p := args.MinCandidateNodesPercentage; p != nil {
		a.preemption.MinCandidatePercentage = int(*p)
	}
	if n := args.MinCandidateNodesAbsolute; n != nil {
		a.preemption.MinCandidates = int(*n)
	}
	percentage, absolute := a.preemption.MinCandidatePercentage, a.preemption.MinCandidates
	switch {
	case percentage < 0 || percentage > 100:
		return fmt.Errorf("minCandidateNodesPercentage: is %d, must be from 0 to 100", percentage)
	case absolute < 0:
		return fmt.Errorf("minCandidateNodesAbsolute: is %d, must not be negative", absolute)
	case percentage == 0 && absolute == 0:
		return errors.New("minCandidateNodesAbsolute: must not be 0 if minCandidateNodesPercentage is 0 too")
	}
	return nil
}

func (a *arguments) readBalance(data []byte) error {
	args := configv1.NodeResourcesBalancedAllocationArgs{}
	if err := decode(data, &args); err != nil {
		return err
	}
	for _, r := range args.Resources {
		if r.Weight != 0 && r.Weight != 1 {
			return fmt.Errorf("resources[%s].weight: is %d, must be 1", r.Name, r.Weight)
		}
		a.balance.Resources = append(a.balance.Resources, v1.ResourceName(r.Name))
	}
	return nil
}

func (a *arguments) readSpread(data []byte) error {
	args := configv1.PodTopologySpreadArgs{}
	if err := decode(data, &args); err != nil {
		return err
	}
	switch args.DefaultingType {
	case "", configv1.SystemDefaulting:
		if len(args.DefaultConstraints) > 0 {
			return errors.New("defaultConstraints: need defaultingType List")
		}
		return nil
	case configv1.ListDefaulting:
	default:
		return fmt.Errorf("defaultingType: is %q, must be System or List", args.DefaultingType)
	}
	for i := range args.DefaultConstraints {
		if err := checkConstraint(fmt.Sprintf("defaultConstraints[%d]", i), &args.DefaultConstraints[i]); err != nil {
			return err
		}
	}
	a.spread.SystemDefaults = false
	a.spread.Defaults = shape.CompileSpread(args.DefaultConstraints, nil)
	return nil
}

func checkConstraint(field string, c *v1.TopologySpreadConstraint) error {
	switch {
	case c.LabelSelector != nil:
		return fmt.Errorf("%s.labelSelector: must not be set, it follows from what the pods belong to", field)
	case c.MaxSkew <= 0:
		return fmt.Errorf("%s.maxSkew: is %d, must be greater than 0", field, c.MaxSkew)
	case c.TopologyKey == "":
		return fmt.Errorf("%s.topologyKey: must be set", field)
	case c.WhenUnsatisfiable != v1.DoNotSchedule && c.WhenUnsatisfiable != v1.ScheduleAnyway:
		return fmt.Errorf("%s.whenUnsatisfiable: is %q, must be DoNotSchedule or ScheduleAnyway", field, c.WhenUnsatisfiable)
	}
	return nil
}
