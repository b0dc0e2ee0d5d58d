// Package all puts the controllers together. It is the only package that knows all of them.
package all

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/bayplan/bayplan/internal/controller"
	"github.com/bayplan/bayplan/internal/controller/attachdetach"
	"github.com/bayplan/bayplan/internal/controller/bootstrapsigner"
	"github.com/bayplan/bayplan/internal/controller/clusterroleaggregation"
	"github.com/bayplan/bayplan/internal/controller/cronjob"
	"github.com/bayplan/bayplan/internal/controller/csrapproving"
	"github.com/bayplan/bayplan/internal/controller/csrcleaner"
	"github.com/bayplan/bayplan/internal/controller/csrsigning"
	"github.com/bayplan/bayplan/internal/controller/daemonset"
	"github.com/bayplan/bayplan/internal/controller/deployment"
	"github.com/bayplan/bayplan/internal/controller/disruption"
	"github.com/bayplan/bayplan/internal/controller/endpoint"
	"github.com/bayplan/bayplan/internal/controller/endpointslice"
	"github.com/bayplan/bayplan/internal/controller/endpointslicemirroring"
	"github.com/bayplan/bayplan/internal/controller/ephemeralvolume"
	"github.com/bayplan/bayplan/internal/controller/garbagecollector"
	"github.com/bayplan/bayplan/internal/controller/job"
	"github.com/bayplan/bayplan/internal/controller/namespace"
	"github.com/bayplan/bayplan/internal/controller/nodelifecycle"
	"github.com/bayplan/bayplan/internal/controller/podgc"
	"github.com/bayplan/bayplan/internal/controller/policystatus"
	"github.com/bayplan/bayplan/internal/controller/pvcprotection"
	"github.com/bayplan/bayplan/internal/controller/pvprotection"
	"github.com/bayplan/bayplan/internal/controller/replicaset"
	"github.com/bayplan/bayplan/internal/controller/replicationcontroller"
	"github.com/bayplan/bayplan/internal/controller/resourcequota"
	"github.com/bayplan/bayplan/internal/controller/rootca"
	"github.com/bayplan/bayplan/internal/controller/serviceaccount"
	"github.com/bayplan/bayplan/internal/controller/serviceaccounttoken"
	"github.com/bayplan/bayplan/internal/controller/servicecidr"
	"github.com/bayplan/bayplan/internal/controller/statefulset"
	"github.com/bayplan/bayplan/internal/controller/storageversionmigrator"
	"github.com/bayplan/bayplan/internal/controller/tainteviction"
	"github.com/bayplan/bayplan/internal/controller/tokencleaner"
	"github.com/bayplan/bayplan/internal/controller/ttl"
	"github.com/bayplan/bayplan/internal/controller/ttlafterfinished"
	"github.com/bayplan/bayplan/internal/controller/vacprotection"
	"github.com/bayplan/bayplan/internal/controller/volumebinder"
	"github.com/bayplan/bayplan/internal/controller/volumeexpand"
)

// Constructor makes one controller.
type Constructor func(ctx context.Context, deps controller.Deps) (controller.Controller, error)

// Table names the constructor of each controller, in the order in which they start.
func Table() []Entry {
	return []Entry{
		{serviceaccount.Name, serviceaccount.New, []string{"serviceaccounts"}},
		{serviceaccounttoken.Name, serviceaccounttoken.New, []string{"serviceaccounts", "secrets"}},
		{rootca.Name, rootca.New, []string{"configmaps"}},
		{replicaset.Name, replicaset.New, []string{"replicasets.apps"}},
		{replicationcontroller.Name, replicationcontroller.New, []string{"replicationcontrollers"}},
		{deployment.Name, deployment.New, []string{"deployments.apps", "replicasets.apps"}},
		{garbagecollector.Name, garbagecollector.New, nil},
		{daemonset.Name, daemonset.New, []string{"daemonsets.apps", "controllerrevisions.apps"}},
		{statefulset.Name, statefulset.New, []string{"statefulsets.apps", "controllerrevisions.apps", "persistentvolumeclaims"}},
		{cronjob.Name, cronjob.New, []string{"cronjobs.batch", "jobs.batch"}},
		{disruption.Name, disruption.New, []string{"poddisruptionbudgets.policy", "deployments.apps", "replicasets.apps", "statefulsets.apps", "replicationcontrollers"}},
		{endpoint.Name, endpoint.New, []string{"services", "endpoints"}},
		{endpointslice.Name, endpointslice.New, []string{"services", "endpointslices.discovery.k8s.io"}},
		{endpointslicemirroring.Name, endpointslicemirroring.New, []string{"services", "endpoints", "endpointslices.discovery.k8s.io"}},
		{job.Name, job.New, []string{"jobs.batch"}},
		{ttlafterfinished.Name, ttlafterfinished.New, []string{"jobs.batch"}},
		{namespace.Name, namespace.New, nil},
		{nodelifecycle.Name, nodelifecycle.New, []string{"leases.coordination.k8s.io"}},
		{tainteviction.Name, tainteviction.New, nil},
		{resourcequota.Name, resourcequota.New, []string{"resourcequotas", "services", "persistentvolumeclaims"}},
		{podgc.Name, podgc.New, nil},
		{policystatus.Name, policystatus.New, []string{"validatingadmissionpolicies.admissionregistration.k8s.io"}},
		{clusterroleaggregation.Name, clusterroleaggregation.New, []string{"clusterroles.rbac.authorization.k8s.io"}},
		{tokencleaner.Name, tokencleaner.New, []string{"secrets"}},
		{bootstrapsigner.Name, bootstrapsigner.New, []string{"secrets", "configmaps"}},
		{servicecidr.Name, servicecidr.New, []string{"servicecidrs.networking.k8s.io", "ipaddresses.networking.k8s.io"}},
		{volumebinder.Name, volumebinder.New, []string{"persistentvolumes", "persistentvolumeclaims", "storageclasses.storage.k8s.io"}},
		{ephemeralvolume.Name, ephemeralvolume.New, []string{"persistentvolumeclaims"}},
		{pvcprotection.Name, pvcprotection.New, []string{"persistentvolumeclaims"}},
		{pvprotection.Name, pvprotection.New, []string{"persistentvolumes"}},
		{vacprotection.Name, vacprotection.New, []string{"persistentvolumes", "persistentvolumeclaims", "volumeattributesclasses.storage.k8s.io"}},
		{attachdetach.Name, attachdetach.New, []string{
			"persistentvolumes", "persistentvolumeclaims", "csidrivers.storage.k8s.io", "volumeattachments.storage.k8s.io",
		}},
		{volumeexpand.Name, volumeexpand.New, []string{"persistentvolumes", "persistentvolumeclaims"}},
		{ttl.Name, ttl.New, nil},
		{storageversionmigrator.Name, storageversionmigrator.New, []string{"storageversionmigrations.storagemigration.k8s.io"}},
		{csrapproving.Name, csrapproving.New, []string{"certificatesigningrequests.certificates.k8s.io"}},
		{csrsigning.Name, csrsigning.New, []string{"certificatesigningrequests.certificates.k8s.io"}},
		{csrcleaner.Name, csrcleaner.New, []string{"certificatesigningrequests.certificates.k8s.io"}},
	}
}

// Entry is a line of the table.
type Entry struct {
	Name string
	New  Constructor
	// Needs are the resources ("jobs.batch") that the API server must serve, beside pods, nodes and namespaces, for the controller to
	// work. A controller waits for them for ever otherwise.
	Needs []string
}

// Available lists the names of the controllers whose resources are all served, to be given to New, and for each of the others the resources
// that are missing.
func Available(d discovery.ServerResourcesInterface) (names []string, missing map[string][]string, err error) {
	_, lists, err := d.ServerGroupsAndResources()
	if err != nil {
		return nil, nil, fmt.Errorf("ask which resources are served: %w", err)
	}
	served := map[string]bool{}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, nil, err
		}
		for _, r := range list.APIResources {
			served[gv.WithResource(r.Name).GroupResource().String()] = true
		}
	}
	missing = map[string][]string{}
	for _, entry := range Table() {
		for _, need := range entry.Needs {
			if !served[need] {
				missing[entry.Name] = append(missing[entry.Name], need)
			}
		}
		if len(missing[entry.Name]) == 0 {
			names = append(names, entry.Name)
		}
	}
	return names, missing, nil
}

// Group is a set of controllers that run together.
type Group struct {
	deps        controller.Deps
	controllers []controller.Controller
}

// New makes the controllers of the given names, or all when none is given.
func New(ctx context.Context, deps controller.Deps, names ...string) (*Group, error) {
	deps = deps.WithDefaults()
	g := &Group{deps: deps}
	for _, entry := range Table() {
		if len(names) > 0 && !slices.Contains(names, entry.Name) {
			continue
		}
		c, err := entry.New(ctx, deps)
		if err != nil {
			return nil, fmt.Errorf("make controller %s: %w", entry.Name, err)
		}
		g.controllers = append(g.controllers, c)
	}
	if len(names) > len(g.controllers) {
		return nil, fmt.Errorf("no such controller among %v: known are %v", names, Names())
	}
	return g, nil
}

// Names lists the names of all controllers.
func Names() []string {
	var names []string
	for _, entry := range Table() {
		names = append(names, entry.Name)
	}
	return names
}

// Run starts the shared informers and runs the controllers until ctx is done. It returns when all of their goroutines have ended; the informers,
// which others may share, are left to their owner.
func (g *Group) Run(ctx context.Context) {
	g.deps.Informers.StartWithContext(ctx)
	var running sync.WaitGroup
	for _, c := range g.controllers {
		running.Go(func() { c.Run(ctx) })
	}
	running.Wait()
}
