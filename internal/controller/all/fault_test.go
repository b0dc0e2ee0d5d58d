package all

import (
	"errors"
	"math/rand/v2"
	"net/http"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/bayplan/bayplan/internal/controller/controllertest"
)

// before is what a user has, after is what they change it to.
const before = `
apiVersion: v1
kind: Namespace
metadata: {name: doomed}
---
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {conditions: [{type: Ready, status: "True", lastHeartbeatTime: "2000-01-01T00:00:00Z"}]}
---
apiVersion: v1
kind: Node
metadata: {name: n2}
status: {conditions: [{type: Ready, status: "True", lastHeartbeatTime: "2000-01-01T00:00:00Z"}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: inside, namespace: doomed}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {clusterIP: 10.0.0.1, ipFamilies: [IPv4], selector: {app: web}, ports: [{port: 80, protocol: TCP}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  revisionHistoryLimit: 0
  selector: {matchLabels: {app: web}}
  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1, maxUnavailable: 1}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: "i:1"}]}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 3
  selector: {matchLabels: {app: db}}
  template: {metadata: {labels: {app: db}}, spec: {containers: [{name: c, image: "i:1"}]}}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  updateStrategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 1}}
  template: {metadata: {labels: {app: agent}}, spec: {containers: [{name: c, image: "i:1"}]}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: work}
spec:
  completions: 4
  parallelism: 2
  backoffLimit: 100
  selector: {matchLabels: {job: work}}
  template: {metadata: {labels: {job: work}}, spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: disk}
spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], persistentVolumeReclaimPolicy: Retain, hostPath: {path: /disk}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {storageClassName: "", accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: spare}
spec: {storageClassName: "", accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Ti}}}
---
apiVersion: storage.k8s.io/v1
kind: VolumeAttributesClass
metadata: {name: spare}
driverName: d
---
apiVersion: storagemigration.k8s.io/v1
kind: StorageVersionMigration
metadata: {name: configmaps}
spec: {resource: {resource: configmaps}}
---
apiVersion: v1
kind: Service
metadata: {name: outside}
spec: {clusterIP: 10.0.0.2, ipFamilies: [IPv4], ports: [{port: 80, protocol: TCP}]}
---
apiVersion: v1
kind: Endpoints
metadata: {name: outside}
subsets: [{addresses: [{ip: 192.0.2.1}], ports: [{port: 80, protocol: TCP}]}]
---
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: gone}
spec:
  replicas: 2
  selector: {matchLabels: {app: gone}}
  template: {metadata: {labels: {app: gone}}, spec: {containers: [{name: c, image: "i:1"}]}}`

const after = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 5
  revisionHistoryLimit: 0
  selector: {matchLabels: {app: web}}
  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1, maxUnavailable: 1}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: "i:2"}]}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 2
  selector: {matchLabels: {app: db}}
  template: {metadata: {labels: {app: db}}, spec: {containers: [{name: c, image: "i:2"}]}}`

// endState is what must be the same in the end, whatever happened on the way.
var endState = map[string][]string{
	"namespaces":              {"status.phase"},
	"replicasets":             {"spec.replicas", "status.replicas", "status.readyReplicas"},
	"deployments":             {"status.replicas", "status.updatedReplicas", "status.availableReplicas", "status.unavailableReplicas"},
	"statefulsets":            {"status.replicas", "status.updatedReplicas", "status.readyReplicas", "status.currentRevision"},
	"daemonsets":              {"status.numberReady", "status.updatedNumberScheduled", "status.desiredNumberScheduled"},
	"jobs":                    {"status.succeeded", "status.active", "status.uncountedTerminatedPods"},
	"configmaps":              {"data"},
	"serviceaccounts":         nil,
	"endpoints":               nil,
	"persistentvolumes":       {"status.phase", "spec.claimRef.name"},
	"persistentvolumeclaims":  {"status.phase", "spec.volumeName", "metadata.finalizers"},
	"volumeattributesclasses": nil,
}

// faults makes requests of controllers fail, before or after they took place, and watches late.
type faults struct {
	mu     sync.Mutex
	random *rand.Rand
	rate   float64
	on     bool
}

func (f *faults) fail(r controllertest.Request, done bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.on || r.FromOutside() || r.Verb == "watch" || f.random.Float64() > f.rate {
		return nil
	}
	switch {
	case done:
		return apierrors.NewTimeoutError("the answer was lost", 1)
	case r.Verb == "update" && f.random.IntN(2) == 0:
		return apierrors.NewConflict(r.Resource.GroupResource(), r.Name, errors.New("somebody was faster"))
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusInternalServerError, Reason: metav1.StatusReasonInternalError, Message: "out of order"}}
}

func (f *faults) delay() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.on || f.random.IntN(4) > 0 {
		return 0
	}
	return time.Duration(f.random.IntN(500)) * time.Millisecond
}

func (f *faults) stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.on = false
}

// live plays the story from before to after and returns the end state. Two groups of controllers overlap when a leader changes.
func live(t *testing.T, seed uint64, rate float64, leaders int) (state string) {
	synctest.Test(t, func(t *testing.T) {
		e, err := controllertest.NewEnv()
		if err != nil {
			t.Fatal(err)
		}
		defer e.Stop()
		f := &faults{random: rand.New(rand.NewPCG(seed, 1)), rate: rate, on: rate > 0}
		e.API.Fault = f.fail
		if rate > 0 {
			e.API.WatchDelay = f.delay
		}
		stop := startGroup(t, e)
		e.Kubelet(true)
		e.Command("apply", before)
		for range leaders {
			e.Advance(3 * time.Second)
			next := startGroup(t, e)
			e.Advance(time.Second)
			stop()
			stop = next
		}
		e.Command("apply", after)
		e.Command("delete namespaces doomed", "")
		e.Command("delete replicasets gone Foreground", "")
		e.Command("delete persistentvolumeclaims spare", "")
		e.Command("delete volumeattributesclasses spare", "")
		e.Command("delete persistentvolumeclaims spare", "")
		e.Command("delete volumeattributesclasses spare", "")
		e.Advance(20 * time.Second)
		f.stop()
		for range 20 {
			beat(e)
			for _, pod := range e.Pods() {
				if pod.Labels["job"] != "" && pod.Status.Phase == "Running" {
					_ = e.SetPod(pod, "succeed")
				}
			}
			e.Advance(40 * time.Second)
		}
		state = e.Fingerprint(endState)
		stop()
	})
	return state
}

// beat is the sign of life of the nodes.
func beat(e *controllertest.Env) {
	now := time.Now().UTC().Format(time.RFC3339)
	for _, node := range []string{"n1", "n2"} {
		e.Command("patch nodes "+node+" status", `status: {conditions: [{type: Ready, status: "True", lastHeartbeatTime: "`+now+`"}]}`)
	}
}

// The faults of these tests are wanted; what is logged about them is not.
func TestMain(m *testing.M) {
	klog.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

func startGroup(t *testing.T, e *controllertest.Env) func() {
	t.Helper()
	var constructors []controllertest.Constructor
	for _, entry := range Table() {
		constructors = append(constructors, controllertest.Constructor(entry.New))
	}
	stop, err := e.Start(constructors...)
	if err != nil {
		t.Fatal(err)
	}
	return stop
}

// All controllers together reach the same end state under API errors, conflicts, lost answers, late watches and changes of the leader as
// without.
func TestFaultsChangeNothingInTheEnd(t *testing.T) {
	want := live(t, 0, 0, 0)
	for seed := range uint64(12) {
		rate, leaders := []float64{0.05, 0.2, 0.4}[seed%3], int(seed/3)%3
		if got := live(t, seed, rate, leaders); got != want {
			t.Errorf("seed %d: with %v of the requests failing and %d changes of the leader the end state is\n%s\nwithout faults it is\n%s", seed, rate, leaders, got, want)
		}
	}
}
