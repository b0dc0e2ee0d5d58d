// Package config reads a KubeSchedulerConfiguration (kubescheduler.config.k8s.io/v1).
//
//	YAML ──► strict decoding ──► defaults ──► plugin sets merged per extension point ──► arguments checked ──► profiles
//
// Every error names the profile, the plugin and the field.
package config

import (
	"errors"
	"fmt"
	"time"

	"github.com/bayplan/bayplan/internal/scheduler/core"
	"github.com/bayplan/bayplan/internal/scheduler/queue"
	v1 "k8s.io/api/core/v1"
	componentconfig "k8s.io/component-base/config/v1alpha1"
	configv1 "k8s.io/kube-scheduler/config/v1"
	"sigs.k8s.io/yaml"
)

// Kind is the kind of configuration read.
const Kind = "KubeSchedulerConfiguration"

// Config is what a configuration asks for.
type Config struct {
	Profiles         []core.Profile
	Queue            queue.Options
	LeaderElection   componentconfig.LeaderElectionConfiguration
	ClientConnection componentconfig.ClientConnectionConfiguration
	// Parallelism bounds how many pods are bound at the same time.
	Parallelism int
}

// Default is the configuration without a file.
func Default() *Config {
	c, err := build(&configv1.KubeSchedulerConfiguration{})
	if err != nil {
		panic("config: the defaults are not valid: " + err.Error())
	}
	return c
}

// Parse reads a configuration.
func Parse(data []byte) (*Config, error) {
	file := &configv1.KubeSchedulerConfiguration{}
	if err := yaml.UnmarshalStrict(data, file); err != nil {
		return nil, fmt.Errorf("%s: %w", Kind, err)
	}
	if file.APIVersion != configv1.SchemeGroupVersion.String() || file.Kind != Kind {
		return nil, fmt.Errorf("apiVersion is %q and kind %q, want %q and %q", file.APIVersion, file.Kind,
			configv1.SchemeGroupVersion, Kind)
	}
	return build(file)
}

func build(file *configv1.KubeSchedulerConfiguration) (*Config, error) {
	c := &Config{LeaderElection: file.LeaderElection, ClientConnection: file.ClientConnection, Parallelism: 16}
	var problems []error
	if len(file.Extenders) > 0 {
		problems = append(problems, errors.New("extenders: HTTP extenders are not supported; remove the list"))
	}
	if file.Parallelism != nil {
		c.Parallelism = int(*file.Parallelism)
		if c.Parallelism < 1 {
			problems = append(problems, fmt.Errorf("parallelism: is %d, must be greater than 0", c.Parallelism))
		}
	}
	problems = append(problems, percentage("percentageOfNodesToScore", file.PercentageOfNodesToScore))
	problems = append(problems, c.setBackoff(file))
	profiles := file.Profiles
	if len(profiles) == 0 {
		profiles = []configv1.KubeSchedulerProfile{{}}
	}
	names := map[string]bool{}
	for i := range profiles {
		profile, err := newProfile(fmt.Sprintf("profiles[%d]", i), &profiles[i])
		if err == nil && names[profile.SchedulerName] {
			err = fmt.Errorf("profiles[%d].schedulerName: %q is the name of another profile too", i, profile.SchedulerName)
		}
		if err != nil {
			problems = append(problems, err)
			continue
		}
		names[profile.SchedulerName] = true
		c.Profiles = append(c.Profiles, *profile)
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	return c, nil
}

// percentage checks a setting that is accepted and has no effect: every node is looked at in every decision.
func percentage(field string, value *int32) error {
	if value != nil && (*value < 0 || *value > 100) {
		return fmt.Errorf("%s: is %d, must be from 0 to 100", field, *value)
	}
	return nil
}

func (c *Config) setBackoff(file *configv1.KubeSchedulerConfiguration) error {
	first, most := int64(1), int64(10)
	if file.PodInitialBackoffSeconds != nil {
		first = *file.PodInitialBackoffSeconds
	}
	if file.PodMaxBackoffSeconds != nil {
		most = *file.PodMaxBackoffSeconds
	}
	if first < 1 {
		return fmt.Errorf("podInitialBackoffSeconds: is %d, must be greater than 0", first)
	}
	if most < first {
		return fmt.Errorf("podMaxBackoffSeconds: is %d, must not be less than podInitialBackoffSeconds, %d", most, first)
	}
	c.Queue.InitialBackoff, c.Queue.MaxBackoff = time.Duration(first)*time.Second, time.Duration(most)*time.Second
	return nil
}

func newProfile(field string, p *configv1.KubeSchedulerProfile) (*core.Profile, error) {
	name := v1.DefaultSchedulerName
	if p.SchedulerName != nil {
		name = *p.SchedulerName
	}
	if name == "" {
		return nil, fmt.Errorf("%s.schedulerName: must not be empty", field)
	}
	field = fmt.Sprintf("%s (%s)", field, name)
	args, err := readArgs(field, p.PluginConfig)
	if err != nil {
		return nil, err
	}
	if err := percentage(field+".percentageOfNodesToScore", p.PercentageOfNodesToScore); err != nil {
		return nil, err
	}
	sets := p.Plugins
	if sets == nil {
		sets = &configv1.Plugins{}
	}
	plugins, err := choose(field+".plugins", sets, args)
	if err != nil {
		return nil, err
	}
	return &core.Profile{SchedulerName: name, Plugins: *plugins}, nil
}
