package config

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/bayplan/bayplan/internal/scheduler/cycle"
	"github.com/bayplan/bayplan/internal/scheduler/plugins"
)

const header = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"

// outline writes a profile's plugins: filters, scores with weights, whether it preempts.
func outline(p *cycle.Profile) string {
	var filters, scores []string
	for _, f := range p.Filters {
		filters = append(filters, f.Name())
	}
	for _, s := range p.Scores {
		scores = append(scores, fmt.Sprintf("%s=%d", s.Name(), s.Weight))
	}
	return fmt.Sprintf("filter %s; score %s; preempt %v", strings.Join(filters, " "), strings.Join(scores, " "), p.Preemption != nil)
}

func TestDefaultIsThatOfPlugins(t *testing.T) {
	want := plugins.Default()
	got := Default().Profiles[0]
	if outline(&got.Plugins) != outline(&want) {
		t.Errorf("default profile:\n%s\nplugins.Default:\n%s", outline(&got.Plugins), outline(&want))
	}
	if !reflect.DeepEqual(got.Plugins.Preemption, want.Preemption) {
		t.Errorf("preemption is %+v, want %+v", got.Plugins.Preemption, want.Preemption)
	}
}

func TestProfiles(t *testing.T) {
	const all = "NodeName NodeUnschedulable TaintToleration NodeAffinity NodePorts NodeResourcesFit VolumeRestrictions NodeVolumeLimits " +
		"VolumeBinding VolumeZone PodTopologySpread InterPodAffinity NodeDeclaredFeatures"
	const scores = "TaintToleration=3 NodeAffinity=2 NodeResourcesFit=1 VolumeBinding=1 PodTopologySpread=2 InterPodAffinity=2 " +
		"NodeResourcesBalancedAllocation=1 ImageLocality=1"
	for _, test := range []struct{ name, plugins, want string }{
		{"nothing said", ``, "filter " + all + "; score " + scores + "; preempt true"},
		{"scores off", `{score: {disabled: [{name: "*"}]}}`, "filter " + all + "; score ; preempt true"},
		{"only one score", `{score: {disabled: [{name: "*"}], enabled: [{name: ImageLocality, weight: 7}]}}`,
			"filter " + all + "; score ImageLocality=7; preempt true"},
		{"weight changed at the point, which comes first", `{score: {enabled: [{name: ImageLocality, weight: 7}]}}`,
			"filter " + all + "; score ImageLocality=7 TaintToleration=3 NodeAffinity=2 NodeResourcesFit=1 VolumeBinding=1 PodTopologySpread=2 " +
				"InterPodAffinity=2 NodeResourcesBalancedAllocation=1; preempt true"},
		{"weight changed in place by multiPoint", `{multiPoint: {enabled: [{name: ImageLocality, weight: 7}]}}`,
			"filter " + all + "; score " + strings.Replace(scores, "ImageLocality=1", "ImageLocality=7", 1) + "; preempt true"},
		{"off everywhere", `{multiPoint: {disabled: [{name: DefaultPreemption}, {name: DynamicResources}, {name: TaintToleration}]}}`,
			"filter " + strings.Replace(all, "TaintToleration ", "", 1) + "; score " + strings.Replace(scores, "TaintToleration=3 ", "", 1) + "; preempt false"},
		{"nothing but what is named",
			`{multiPoint: {disabled: [{name: "*"}], enabled: [{name: NodeResourcesFit}, {name: PrioritySort}, {name: DefaultBinder}]}}`,
			"filter NodeResourcesFit; score NodeResourcesFit=1; preempt false"},
		{"filter off, score on", `{filter: {disabled: [{name: TaintToleration}]}}`,
			"filter " + strings.Replace(all, "TaintToleration ", "", 1) + "; score " + scores + "; preempt true"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, err := Parse([]byte(header + "profiles: [{plugins: " + orEmpty(test.plugins) + "}]"))
			if err != nil {
				t.Fatal(err)
			}
			if got := outline(&c.Profiles[0].Plugins); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

func orEmpty(s string) string {
	if s == "" {
		return "{}"
	}
	return s
}

// TestExamples reads the configurations of testdata, which are of the kinds that the Kubernetes documentation shows.
func TestExamples(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples (%v)", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Parse(data); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

func TestTimes(t *testing.T) {
	c, err := Parse([]byte(header + "podInitialBackoffSeconds: 2\npodMaxBackoffSeconds: 30\nparallelism: 4\npercentageOfNodesToScore: 50"))
	if err != nil {
		t.Fatal(err)
	}
	if c.Queue.InitialBackoff != 2*time.Second || c.Queue.MaxBackoff != 30*time.Second || c.Parallelism != 4 {
		t.Errorf("got %+v, parallelism %d", c.Queue, c.Parallelism)
	}
}

func TestErrorsNameProfilePluginAndField(t *testing.T) {
	pluginConfig := func(name, args string) string {
		return fmt.Sprintf("profiles: [{schedulerName: mine, pluginConfig: [{name: %s, args: %s}]}]", name, args)
	}
	for _, test := range []struct{ text, want string }{
		{"nonsense: 1", `unknown field "nonsense"`},
		{"parallelism: 0", "parallelism: is 0, must be greater than 0"},
		{"percentageOfNodesToScore: 101", "percentageOfNodesToScore: is 101, must be from 0 to 100"},
		{"podInitialBackoffSeconds: 5\npodMaxBackoffSeconds: 3", "podMaxBackoffSeconds: is 3, must not be less than podInitialBackoffSeconds, 5"},
		{"extenders: [{urlPrefix: 'http://127.0.0.1'}]", "extenders: HTTP extenders are not supported"},
		{"profiles: [{schedulerName: a}, {schedulerName: a}]", `profiles[1].schedulerName: "a" is the name of another profile too`},
		{"profiles: [{schedulerName: ''}]", "profiles[0].schedulerName: must not be empty"},
		{"profiles: [{plugins: {score: {enabled: [{name: Nope}]}}}]",
			`profiles[0] (default-scheduler).plugins.score.enabled: there is no plugin "Nope"`},
		{"profiles: [{plugins: {score: {enabled: [{name: NodePorts}]}}}]",
			"plugins.score.enabled: the plugin NodePorts has nothing to do there"},
		{"profiles: [{plugins: {multiPoint: {enabled: [{name: DynamicResources}]}}}]",
			"plugins.multiPoint.enabled: this scheduler does not have the plugin DynamicResources"},
		{"profiles: [{plugins: {score: {enabled: [{name: ImageLocality}, {name: ImageLocality}]}}}]", "ImageLocality is listed twice"},
		{"profiles: [{plugins: {queueSort: {disabled: [{name: PrioritySort}]}}}]", "plugins.queueSort: a profile needs a plugin there"},
		{"profiles: [{plugins: {placementScore: {enabled: [{name: X}]}}}]", "plugins.placementScore: pod groups are not supported"},
		{pluginConfig("NodeName", "{}"), "profiles[0] (mine).pluginConfig[NodeName]: there is no such plugin, or it takes no arguments"},
		{pluginConfig("VolumeBinding", "{bindTimeoutSeconds: -1}"), "pluginConfig[VolumeBinding].args.bindTimeoutSeconds: is -1, must not be negative"},
		{pluginConfig("VolumeBinding", "{shape: [{utilization: 0, score: 11}]}"), "args.shape[0].score: is 11, must be from 0 to 10"},
		{pluginConfig("DynamicResources", "{}"), "pluginConfig[DynamicResources]: this scheduler does not have the plugin"},
		{pluginConfig("InterPodAffinity", "{hardPodAffinityWeight: 101}"),
			"profiles[0] (mine).pluginConfig[InterPodAffinity].args.hardPodAffinityWeight: is 101, must be from 0 to 100"},
		{pluginConfig("InterPodAffinity", "{oops: 1}"), `unknown field "oops"`},
		{pluginConfig("DefaultPreemption", "{minCandidateNodesPercentage: -1}"), "minCandidateNodesPercentage: is -1"},
		{pluginConfig("DefaultPreemption", "{minCandidateNodesPercentage: 0, minCandidateNodesAbsolute: 0}"), "must not be 0 if"},
		{pluginConfig("PodTopologySpread", "{defaultConstraints: [{maxSkew: 1}]}"), "defaultConstraints: need defaultingType List"},
		{pluginConfig("PodTopologySpread", "{defaultingType: List, defaultConstraints: [{maxSkew: 0}]}"), "defaultConstraints[0].maxSkew: is 0"},
		{pluginConfig("NodeResourcesFit", "{scoringStrategy: {type: Fullest}}"), `scoringStrategy.type: is "Fullest"`},
		{pluginConfig("NodeResourcesFit", "{scoringStrategy: {type: RequestedToCapacityRatio}}"), "requestedToCapacityRatio: must be set"},
		{pluginConfig("NodeResourcesFit", "{scoringStrategy: {type: RequestedToCapacityRatio, requestedToCapacityRatio: {shape: [{utilization: 50, score: 1}, {utilization: 50, score: 2}]}}}"),
			"shape[1].utilization: is 50, must be greater than the one before"},
		{pluginConfig("NodeResourcesBalancedAllocation", "{resources: [{name: cpu, weight: 3}]}"), "resources[cpu].weight: is 3, must be 1"},
		{pluginConfig("NodeAffinity", "{addedAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{}]}}}"),
			"addedAffinity: a required term is empty"},
	} {
		_, err := Parse([]byte(header + test.text))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s\ngave %v\nwant %s", test.text, err, test.want)
		}
	}
	if _, err := Parse([]byte("apiVersion: v1\nkind: Pod")); err == nil || !strings.Contains(err.Error(), `apiVersion is "v1"`) {
		t.Errorf("a Pod as configuration gave %v", err)
	}
}

// FuzzParse: whatever the file holds, there is a configuration with usable profiles, or an error.
func FuzzParse(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.yaml")
	for _, file := range files {
		if data, err := os.ReadFile(file); err == nil {
			f.Add(string(data))
		}
	}
	f.Add(header + "profiles: [{plugins: {multiPoint: {disabled: [{name: '*'}]}}}]")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := Parse([]byte(text))
		if err != nil {
			return
		}
		if len(c.Profiles) == 0 || c.Parallelism < 1 || c.Queue.MaxBackoff < c.Queue.InitialBackoff {
			t.Errorf("accepted, but not usable: %+v", c)
		}
	})
}
