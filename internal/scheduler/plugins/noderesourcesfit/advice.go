package noderesourcesfit

import (
	"fmt"
	"strings"

	"github.com/bayplan/bayplan/internal/scheduler/plugin"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Advise implements plugin.Advisor: how much is missing. The distance is the part of the request that is.
func (f *filter) Advise(slot int32) plugin.Advice {
	advice := plugin.Advice{Missing: map[string]int64{}}
	var details []string
	if used, allowed := f.ledger.PodCount[slot], f.ledger.AllowedPods[slot]; used+1 > allowed {
		advice.Missing[string(v1.ResourcePods)] = int64(used + 1 - allowed)
		advice.Distance = 1
		details = append(details, fmt.Sprintf("has %d pods and takes %d", used, allowed))
	}
	for _, r := range f.requests {
		name := f.ledger.Shapes.Resources.Name(r.Resource)
		allocatable := f.ledger.Allocatable(r.Resource)[slot]
		short := r.Amount - (allocatable - f.ledger.Requested(r.Resource)[slot])
		if short <= 0 {
			continue
		}
		advice.Missing[string(name)] = short
		advice.Distance = max(advice.Distance, float64(short)/float64(r.Amount))
		detail := fmt.Sprintf("%s of %s short", Format(name, short), name)
		if r.Amount > allocatable {
			detail += fmt.Sprintf(" (the whole node has %s)", Format(name, allocatable))
		}
		details = append(details, detail)
	}
	advice.Detail = strings.Join(details, ", ")
	return advice
}

// Format writes an amount as people do.
func Format(name v1.ResourceName, amount int64) string {
	switch {
	case name == v1.ResourceCPU:
		return resource.NewMilliQuantity(amount, resource.DecimalSI).String()
	case name == v1.ResourceMemory || name == v1.ResourceEphemeralStorage || strings.HasPrefix(string(name), v1.ResourceHugePagesPrefix):
		return resource.NewQuantity(amount, resource.BinarySI).String()
	}
	return resource.NewQuantity(amount, resource.DecimalSI).String()
}
