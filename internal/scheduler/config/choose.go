package config

import (
	"errors"
	"fmt"
	"slices"

	"github.com/bayplan/bayplan/internal/scheduler/cycle"
	configv1 "k8s.io/kube-scheduler/config/v1"
)

// point is an extension point and what a profile says of it.
type point struct {
	name string
	set  configv1.PluginSet
}

func pointsOf(p *configv1.Plugins) []point {
	return []point{
		{"preEnqueue", p.PreEnqueue}, {"queueSort", p.QueueSort}, {"preFilter", p.PreFilter}, {"filter", p.Filter},
		{"postFilter", p.PostFilter}, {"preScore", p.PreScore}, {"score", p.Score}, {"reserve", p.Reserve},
		{"permit", p.Permit}, {"preBind", p.PreBind}, {"bind", p.Bind}, {"postBind", p.PostBind},
	}
}

// choose finds out which plugins are enabled at which extension point.
func choose(field string, sets *configv1.Plugins, args *arguments) (*cycle.Profile, error) {
	plugins := makePlugins(args)
	problems := []error{plugins.check(field+".multiPoint", "", sets.MultiPoint)}
	for _, p := range []point{
		{"placementGenerate", sets.PlacementGenerate}, {"placementScore", sets.PlacementScore},
		{"podGroupPostFilter", sets.PodGroupPostFilter},
	} {
		if len(p.set.Enabled) > 0 {
			problems = append(problems, fmt.Errorf("%s.%s: pod groups are not supported", field, p.name))
		}
	}
	everywhere := merge(defaults, sets.MultiPoint)
	enabled := map[string][]configv1.Plugin{}
	for _, p := range pointsOf(sets) {
		problems = append(problems, plugins.check(field+"."+p.name, p.name, p.set))
		enabled[p.name] = expand(plugins, p, everywhere)
	}
	for _, required := range []string{"queueSort", "bind"} {
		if len(enabled[required]) == 0 {
			problems = append(problems, fmt.Errorf("%s.%s: a profile needs a plugin there; %s and %s cannot be disabled",
				field, required, prioritySort, defaultBinder))
		}
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	return plugins.assemble(enabled, args), nil
}

// check finds names that there are no plugins for.
func (m made) check(field, at string, set configv1.PluginSet) error {
	var problems []error
	seen := map[string]bool{}
	for _, p := range set.Enabled {
		switch {
		case elsewhere[p.Name]:
			problems = append(problems, fmt.Errorf("%s.enabled: this scheduler does not have the plugin %s", field, p.Name))
		case !m.known(p.Name):
			problems = append(problems, fmt.Errorf("%s.enabled: there is no plugin %q", field, p.Name))
		case at != "" && !m.has(p.Name, at):
			problems = append(problems, fmt.Errorf("%s.enabled: the plugin %s has nothing to do there", field, p.Name))
		case seen[p.Name]:
			problems = append(problems, fmt.Errorf("%s.enabled: the plugin %s is listed twice", field, p.Name))
		case p.Weight != nil && *p.Weight < 0:
			problems = append(problems, fmt.Errorf("%s.enabled: the weight of %s is %d, must not be negative", field, p.Name, *p.Weight))
		}
		seen[p.Name] = true
	}
	return errors.Join(problems...)
}

// merge applies what a profile says of multiPoint to the defaults: those disabled go, those configured again change their
// weight in place, new ones come last.
func merge(defaults []configv1.Plugin, set configv1.PluginSet) (out []configv1.Plugin) {
	var placed []string
	for _, p := range defaults {
		if disabled(set, p.Name) {
			continue
		}
		if at := indexOf(set.Enabled, p.Name); at >= 0 {
			p = set.Enabled[at]
			placed = append(placed, p.Name)
		}
		out = append(out, p)
	}
	for _, p := range set.Enabled {
		if !slices.Contains(placed, p.Name) {
			out = append(out, p)
		}
	}
	return out
}

// expand lists the plugins of one extension point: first those that the point and multiPoint both name, as the point has
// them; then the rest of multiPoint, as far as the point does not disable it; then the point's others.
func expand(m made, p point, everywhere []configv1.Plugin) []configv1.Plugin {
	var both, rest, others []configv1.Plugin
	for _, each := range p.set.Enabled {
		if indexOf(everywhere, each.Name) >= 0 && !disabled(p.set, each.Name) {
			both = append(both, each)
		} else {
			others = append(others, each)
		}
	}
	for _, each := range everywhere {
		if m.has(each.Name, p.name) && !disabled(p.set, each.Name) && indexOf(p.set.Enabled, each.Name) < 0 {
			rest = append(rest, each)
		}
	}
	return slices.Concat(both, rest, others)
}

func disabled(set configv1.PluginSet, name string) bool {
	return indexOf(set.Disabled, name) >= 0 || indexOf(set.Disabled, "*") >= 0
}

func indexOf(list []configv1.Plugin, name string) int {
	return slices.IndexFunc(list, func(p configv1.Plugin) bool { return p.Name == name })
}
