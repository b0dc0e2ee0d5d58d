package peer

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumebinding"
	"k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
)

func init() { metrics.Register() }

// reference is kube-scheduler's own cache and plugins, driven by calls. Its listers read stores that the world fills.
type reference struct {
	ctx       context.Context
	log       klog.Logger
	cache     cache.Cache
	snapshot  *cache.Snapshot
	factory   informers.SharedInformerFactory
	framework framework.Framework
	preempt   *defaultpreemption.DefaultPreemption
	nominator *nominator
	binder    volumebinding.SchedulerVolumeBinder
	weights   map[string]int64
}

// newReference returns the default profile over an empty cluster. ctx ends what the reference runs in the background.
func newReference(ctx context.Context) (*reference, error) {
	configuration, err := latest.Default()
	if err != nil {
		return nil, err
	}
	profile := &configuration.Profiles[0]
	enabled := &profile.Plugins.MultiPoint.Enabled
	*enabled = slices.DeleteFunc(*enabled, func(p config.Plugin) bool { return p.Name == names.DynamicResources })
	client := fake.NewClientset()
	r := &reference{
		ctx: ctx, log: klog.FromContext(ctx), cache: cache.New(ctx, nil, false, false), snapshot: cache.NewEmptySnapshot(),
		factory: informers.NewSharedInformerFactory(client, 0), nominator: &nominator{}, weights: map[string]int64{},
	}
	r.framework, err = runtime.NewFramework(ctx, plugins.NewInTreeRegistry(), profile,
		runtime.WithClientSet(client), runtime.WithInformerFactory(r.factory), runtime.WithSnapshotSharedLister(r.snapshot),
		runtime.WithMutableSnapshotLister(r.snapshot), runtime.WithPodNominator(r.nominator), runtime.WithParallelism(1),
		runtime.WithSharedCSIManager(nodevolumelimits.NewCSIManager(r.factory.Storage().V1().CSINodes().Lister())))
	if err != nil {
		return nil, err
	}
	for _, p := range r.framework.ListPlugins().Score.Enabled {
		r.weights[p.Name] = int64(p.Weight)
	}
	features := feature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate)
	core, storage := r.factory.Core().V1(), r.factory.Storage().V1()
	r.binder, err = volumebinding.NewVolumeBinder(r.log, client, features, core.Pods(), core.Nodes(), storage.CSINodes(),
		core.PersistentVolumeClaims(), core.PersistentVolumes(), storage.StorageClasses(), volumebinding.CapacityCheck{
			CSIDriverInformer: storage.CSIDrivers(), CSIStorageCapacityInformer: storage.CSIStorageCapacities(),
		}, 0)
	if err != nil {
		return nil, err
	}
	r.preempt, err = defaultpreemption.New(ctx, &config.DefaultPreemptionArgs{MinCandidateNodesPercentage: 100, MinCandidateNodesAbsolute: 100},
		r.framework, features)
	return r, err
}

// trial is one pod before the reference's filters.
type trial struct {
	state    fwk.CycleState
	pod      *v1.Pod
	nodes    []fwk.NodeInfo
	statuses *framework.NodeToStatus
	// message is PreFilter's, if it rejected the pod altogether.
	message  string
	feasible []fwk.NodeInfo
	verdict  *verdict
}

// try filters and scores as schedulePod does, but looks at all nodes and scores even a single feasible one.
func (r *reference) try(pod *v1.Pod) (*trial, error) {
	// A snapshot that is only brought up to date keeps, on nodes that did not change, how many nodes had their images before.
	*r.snapshot = *cache.NewEmptySnapshot()
	if err := r.cache.UpdateSnapshot(r.log, r.snapshot); err != nil {
		return nil, err
	}
	nodes, err := r.snapshot.NodeInfos().List()
	if err != nil {
		return nil, err
	}
	t := &trial{state: framework.NewCycleState(), pod: pod, nodes: nodes, statuses: framework.NewDefaultNodeToStatus(), verdict: newVerdict()}
	if err := r.filter(t); err != nil {
		return nil, err
	}
	if len(t.feasible) == 0 {
		t.verdict.message = (&framework.FitError{Pod: pod, NumAllNodes: len(nodes), Diagnosis: framework.Diagnosis{
			NodeToStatus: t.statuses, PreFilterMsg: t.message,
		}}).Error()
		if len(nodes) == 0 {
			t.verdict.message = "no nodes available to schedule pods"
		}
		return t, nil
	}
	return t, r.score(t)
}

func (r *reference) filter(t *trial) error {
	result, status, restrictors := r.framework.RunPreFilterPlugins(r.ctx, t.state, t.pod)
	if !status.IsSuccess() {
		if !status.IsRejected() {
			return status.AsError()
		}
		t.statuses.SetAbsentNodesStatus(status)
		t.message = status.Message()
		for _, node := range t.nodes {
			t.verdict.reject(node.Node().Name, cmp.Or(status.Plugin(), strings.Join(sets.List(restrictors), ",")), status)
		}
		return nil
	}
	plugin := strings.Join(sets.List(restrictors), ",")
	absent := fwk.NewStatus(fwk.UnschedulableAndUnresolvable, fmt.Sprintf("node(s) didn't satisfy plugin(s) %v", sets.List(restrictors)))
	if !result.AllNodes() {
		t.statuses.SetAbsentNodesStatus(absent)
	}
	for _, node := range t.nodes {
		name := node.Node().Name
		if !result.AllNodes() && !result.NodeNames.Has(name) {
			t.verdict.reject(name, plugin, absent)
			continue
		}
		status := r.framework.RunFilterPluginsWithNominatedPods(r.ctx, t.state, t.pod, node)
		switch {
		case status.IsSuccess():
			t.feasible = append(t.feasible, node)
		case status.IsRejected():
			t.statuses.Set(name, status)
			t.verdict.reject(name, status.Plugin(), status)
		default:
			return fmt.Errorf("filter %s on %s: %w", status.Plugin(), name, status.AsError())
		}
	}
	return nil
}

func (r *reference) score(t *trial) error {
	if status := r.framework.RunPreScorePlugins(r.ctx, t.state, t.pod, t.feasible); !status.IsSuccess() {
		return status.AsError()
	}
	scores, status := r.framework.RunScorePlugins(r.ctx, t.state, t.pod, t.feasible)
	if !status.IsSuccess() {
		return status.AsError()
	}
	for _, node := range scores {
		parts := map[string]part{}
		for i, raw := range node.RawScores {
			parts[raw.Name] = part{raw.Score, node.Scores[i].Score / r.weights[raw.Name]}
		}
		t.verdict.feasible[node.Name] = scored{parts, node.TotalScore}
	}
	t.verdict.chosen = framework.NewSortedScoredNodes(scores).Pop().Name
	if len(t.feasible) == 1 {
		t.verdict.chosen = t.feasible[0].Node().Name
	}
	if _, fits := t.verdict.feasible[t.pod.Status.NominatedNodeName]; fits {
		t.verdict.chosen = t.pod.Status.NominatedNodeName
	}
	return nil
}

// nominator keeps the pods nominated to nodes.
type nominator struct{ pods map[types.UID]nominee }

type nominee struct {
	pod  *v1.Pod
	node string
}

func (n *nominator) AddNominatedPod(_ klog.Logger, pod fwk.PodInfo, info *fwk.NominatingInfo) {
	n.nominate(pod.GetPod(), info.NominatedNodeName)
}

func (n *nominator) DeleteNominatedPodIfExists(pod *v1.Pod) { delete(n.pods, pod.UID) }

func (n *nominator) UpdateNominatedPod(_ klog.Logger, _ *v1.Pod, pod fwk.PodInfo) {
	n.nominate(pod.GetPod(), pod.GetPod().Status.NominatedNodeName)
}

func (n *nominator) nominate(pod *v1.Pod, node string) {
	delete(n.pods, pod.UID)
	if node == "" {
		return
	}
	if n.pods == nil {
		n.pods = map[types.UID]nominee{}
	}
	n.pods[pod.UID] = nominee{pod, node}
}

func (n *nominator) NominatedPodsForNode(node string) (out []fwk.PodInfo) {
	for _, each := range n.pods {
		if each.node == node {
			info, err := framework.NewPodInfo(each.pod)
			if err != nil {
				panic(err)
			}
			out = append(out, info)
		}
	}
	slices.SortFunc(out, func(a, b fwk.PodInfo) int {
		return strings.Compare(string(a.GetPod().UID), string(b.GetPod().UID))
	})
	return out
}

// dryRun returns on which nodes preemption would help, and its candidate.
func (r *reference) dryRun(t *trial, budgets []*policyv1.PodDisruptionBudget) (found []candidate, chosen string, err error) {
	potential, err := t.statuses.NodesForStatusCode(r.snapshot.NodeInfos(), fwk.Unschedulable)
	if err != nil || len(potential) == 0 {
		return nil, "", err
	}
	list, _, err := r.preempt.Evaluator.DryRunPreemption(r.ctx, t.state, t.pod, potential, budgets, 0, int32(len(potential)))
	if len(list) == 0 {
		return nil, "", err
	}
	for _, c := range list {
		found = append(found, candidateOf(c.Name(), c.Victims()))
	}
	// The reference lists them in the order of a map.
	slices.SortFunc(found, func(a, b candidate) int { return strings.Compare(a.node, b.node) })
	return found, r.preempt.Evaluator.SelectCandidate(r.ctx, list).Name(), nil
}
