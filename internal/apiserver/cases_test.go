package apiserver_test

// testedElsewhere are resources that are asked and not stored, or that have tests of their own.
var testedElsewhere = []string{}

const (
	podTemplate = `{metadata: {labels: {app: a}}, spec: {containers: [{name: c, image: i}]}}`
	selector    = `{matchLabels: {app: a}}`
)

var kindCases = []kindCase{
	{
		resource: "configmaps.v1", short: "cm", object: `data: {k: v}`, columns: "Name, Data, Age", row: "a | 1",
	},
	{
		resource: "secrets.v1", object: `stringData: {k: v}`, want: `{"type": "Opaque", "data": {"k": "dg=="}}`,
		columns: "Name, Type, Data, Age", row: "a | Opaque | 1",
	},
	{
		resource: "serviceaccounts.v1", short: "sa", object: `automountServiceAccountToken: true`, columns: "Name, Secrets, Age", row: "a | 0",
	},
	{
		resource: "namespaces.v1", short: "ns", subs: "finalize status", name: "an", object: `spec: {finalizers: [kubernetes]}`, want: `{"spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"},
			"metadata": {"labels": {"kubernetes.io/metadata.name": "an"}}}`,
		status: `{conditions: [{type: X, status: "True", lastTransitionTime: null}]}`, columns: "Name, Status, Age", row: "an | Active",
	},
	{
		resource: "nodes.v1", short: "no", subs: "status", object: `spec: {unschedulable: true}`, status: `{phase: Running}`,
		columns: "Name, Status, Roles, Age, Version, Internal-IP*, External-IP*, OS-Image*, Kernel-Version*, Container-Runtime*",
	},
	{
		resource: "pods.v1", short: "po category/all", subs: "attach binding eviction exec log portforward proxy status", generation: true,
		object: `spec: {containers: [{name: c, image: "i:1"}]}`,
		want: `{"spec": {"restartPolicy": "Always", "dnsPolicy": "ClusterFirst", "schedulerName": "default-scheduler", "terminationGracePeriodSeconds": 30,
			"enableServiceLinks": true}, "status": {"phase": "Pending", "qosClass": "BestEffort"}}`,
		status: `{phase: Running}`, columns: "Name, Ready, Status, Restarts, Age, IP*, Node*, Nominated Node*, Readiness Gates*",
		row: "a | 0/1 | Running | 0 | <none> | <none> | <none> | <none>",
	},
	{
		resource: "events.v1", short: "ev", object: `{involvedObject: {kind: Pod, name: p, namespace: default}, reason: R, message: m, type: Normal, count: 2}`,
		columns: "Last Seen, Type, Reason, Object, Subobject*, Source*, Message, First Seen*, Count*, Name*",
	},
	{
		resource: "events.v1.events.k8s.io", short: "ev", object: `{regarding: {kind: Pod, name: p, namespace: default}, reason: R, note: m, type: Normal, action: A,
			eventTime: "2026-01-01T00:00:00.000000Z", reportingController: c, reportingInstance: i}`,
		columns: "Last Seen, Type, Reason, Object, Subobject*, Source*, Message, First Seen*, Count*, Name*",
	},
	{
		resource: "services.v1", short: "svc category/all", subs: "status", object: `spec: {ports: [{port: 80}], selector: {app: a}}`,
		want: `{"spec": {"type": "ClusterIP", "sessionAffinity": "None", "internalTrafficPolicy": "Cluster", "ipFamilyPolicy": "SingleStack", "ipFamilies": ["IPv4"],
			"ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}]}}`,
		status:  `{conditions: [{type: X, status: "True", reason: R, message: m, lastTransitionTime: "2026-01-01T00:00:00Z"}]}`,
		columns: "Name, Type, Cluster-IP, External-IP, Port(s), Age, Selector*",
	},
	{
		resource: "endpoints.v1", short: "ep", object: `subsets: [{addresses: [{ip: 10.1.0.1}, {ip: 10.1.0.2}], ports: [{port: 80, name: a}, {port: 81, name: b}]}]`,
		columns: "Name, Endpoints, Age", row: "a | 10.1.0.1:80,10.1.0.2:80,10.1.0.1:81 + 1 more...",
	},
	{
		resource: "replicationcontrollers.v1", short: "rc category/all", subs: "scale status", generation: true, object: `spec: {template: ` + podTemplate + `}`,
		want:   `{"spec": {"replicas": 1, "selector": {"app": "a"}}, "metadata": {"labels": {"app": "a"}}}`,
		status: `{replicas: 1, readyReplicas: 1}`, columns: "Name, Desired, Current, Ready, Age, Containers*, Images*, Selector*", row: "a | 1 | 1 | 1 | c | i | app=a",
	},
	{
		resource: "podtemplates.v1", object: `template: ` + podTemplate, generation: true, columns: "Name, Containers, Images, Pod Labels", row: "a | c | i | app=a",
		want: `{"template": {"spec": {"restartPolicy": "Always"}}}`,
	},
	{
		resource: "limitranges.v1", short: "limits", object: `spec: {limits: [{type: Container, max: {cpu: "1"}, min: {memory: 1Mi}}]}`,
		want:    `{"spec": {"limits": [{"type": "Container", "max": {"cpu": "1"}, "min": {"memory": "1Mi"}, "default": {"cpu": "1"}, "defaultRequest": {"cpu": "1", "memory": "1Mi"}}]}}`,
		columns: "Name, Created At",
	},
	{
		resource: "resourcequotas.v1", short: "quota", subs: "status", object: `spec: {hard: {pods: "2", limits.cpu: "4"}}`,
		status: `{hard: {pods: "2", limits.cpu: "4"}, used: {pods: "1", limits.cpu: "3"}}`, columns: "Name, Request, Limit, Age", row: "a | pods: 1/2 | limits.cpu: 3/4",
	},
	{
		resource: "persistentvolumes.v1", short: "pv", subs: "status", object: `spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], hostPath: {path: /x}}`,
		want:    `{"spec": {"persistentVolumeReclaimPolicy": "Retain", "volumeMode": "Filesystem"}, "status": {"phase": "Pending"}}`,
		status:  `{phase: Available}`,
		columns: "Name, Capacity, Access Modes, Reclaim Policy, Status, Claim, StorageClass, VolumeAttributesClass, Reason, Age, VolumeMode*",
		row:     "a | 1Gi | RWO | Retain | Available |  |  | <unset> |  | Filesystem",
	},
	{
		resource: "persistentvolumeclaims.v1", short: "pvc", subs: "status", object: `spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}`,
		want: `{"spec": {"volumeMode": "Filesystem"}, "status": {"phase": "Pending"}}`, status: `{phase: Bound}`,
		columns: "Name, Status, Volume, Capacity, Access Modes, StorageClass, VolumeAttributesClass, Age, VolumeMode*",
		row:     "a | Bound |  |  |  |  | <unset> | Filesystem",
	},
	{
		resource: "deployments.v1.apps", short: "deploy category/all", subs: "scale status", generation: true, object: `spec: {selector: ` + selector + `, template: ` + podTemplate + `}`,
		want: `{"spec": {"replicas": 1, "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}}, "revisionHistoryLimit": 10,
			"progressDeadlineSeconds": 600}}`,
		status: `{readyReplicas: 1, replicas: 1}`, columns: "Name, Ready, Up-to-date, Available, Age, Containers*, Images*, Selector*", row: "a | 1/1 | 0 | 0 | c | i | app=a",
	},
	{
		resource: "replicasets.v1.apps", short: "rs category/all", subs: "scale status", generation: true, object: `spec: {selector: ` + selector + `, template: ` + podTemplate + `}`,
		want: `{"spec": {"replicas": 1}}`, status: `{replicas: 1}`, columns: "Name, Desired, Current, Ready, Age, Containers*, Images*, Selector*", row: "a | 1 | 1 | 0 | c | i | app=a",
	},
	{
		resource: "leases.v1.coordination.k8s.io", object: `spec: {holderIdentity: me}`, columns: "Name, Holder, Age", row: "a | me",
	},
	{
		resource: "ipaddresses.v1.networking.k8s.io", short: "ip", name: "10.96.0.9", object: `spec: {parentRef: {resource: services, namespace: default, name: s}}`,
		columns: "Name, ParentRef, Age", row: "10.96.0.9 | services/default/s",
	},
	{
		resource: "servicecidrs.v1.networking.k8s.io", subs: "status", object: `spec: {cidrs: [10.7.0.0/24]}`,
		status:  `{conditions: [{type: Ready, status: "True", reason: R, message: m, lastTransitionTime: "2026-01-01T00:00:00Z"}]}`,
		columns: "Name, CIDRs, Age", row: "a | 10.7.0.0/24",
	},
	{
		resource: "roles.v1.rbac.authorization.k8s.io", object: `rules: [{verbs: [get], apiGroups: [""], resources: [pods]}]`, columns: "Name, Created At", name: "a:b",
	},
	{
		resource: "clusterroles.v1.rbac.authorization.k8s.io", object: `rules: [{verbs: [get], nonResourceURLs: [/x]}]`, columns: "Name, Created At",
	},
	{
		resource: "rolebindings.v1.rbac.authorization.k8s.io",
		object:   `{roleRef: {kind: Role, name: a:b}, subjects: [{kind: User, name: u}, {kind: Group, name: g}, {kind: ServiceAccount, name: s, namespace: ns}]}`,
		want: `{"roleRef": {"apiGroup": "rbac.authorization.k8s.io"}, "subjects": [{"kind": "User", "name": "u", "apiGroup": "rbac.authorization.k8s.io"},
			{"kind": "Group", "name": "g", "apiGroup": "rbac.authorization.k8s.io"}, {"kind": "ServiceAccount", "name": "s", "namespace": "ns"}]}`,
		columns: "Name, Role, Age, Users*, Groups*, ServiceAccounts*", row: "a | Role/a:b | u | g | ns/s",
	},
	{
		resource: "clusterrolebindings.v1.rbac.authorization.k8s.io", object: `{roleRef: {kind: ClusterRole, name: r}}`,
		columns: "Name, Role, Age, Users*, Groups*, ServiceAccounts*", row: "a | ClusterRole/r |  |  | ",
	},
	{
		resource: "endpointslices.v1.discovery.k8s.io", generation: true, object: `{addressType: IPv4, endpoints: [{addresses: [10.1.0.1]}], ports: [{port: 80}]}`,
		want: `{"ports": [{"port": 80, "name": "", "protocol": "TCP"}]}`, columns: "Name, AddressType, Ports, Endpoints, Age", row: "a | IPv4 | 80 | 10.1.0.1",
	},
	{
		resource: "poddisruptionbudgets.v1.policy", short: "pdb", subs: "status", generation: true, object: `spec: {minAvailable: 50%, selector: ` + selector + `}`,
		status:  `{disruptionsAllowed: 2, currentHealthy: 3, desiredHealthy: 1, expectedPods: 3}`,
		columns: "Name, Min Available, Max Unavailable, Allowed Disruptions, Age", row: "a | 50% | N/A | 2",
	},
	{
		resource: "priorityclasses.v1.scheduling.k8s.io", short: "pc", generation: true, object: `value: 5`, want: `{"preemptionPolicy": "PreemptLowerPriority"}`,
		columns: "Name, Value, Global-Default, Age, PreemptionPolicy", row: "a | 5 | false | PreemptLowerPriority",
	},
	{
		resource: "workloads.v1beta1.scheduling.k8s.io", generation: true, object: `spec: {podGroupTemplates: [{name: t, schedulingPolicy: {gang: {minCount: 2}}}]}`,
		columns: "Name, Age",
	},
	{
		resource: "podgroups.v1beta1.scheduling.k8s.io", generation: true, subs: "status", object: `spec: {schedulingPolicy: {gang: {minCount: 2}}}`,
		status: `{conditions: [{type: X, status: "True", reason: R, message: m, lastTransitionTime: "2026-01-01T00:00:00Z"}]}`, columns: "Name, Age",
	},
	{
		resource: "storageclasses.v1.storage.k8s.io", short: "sc", object: `{provisioner: x.io/y, metadata: {annotations: {storageclass.kubernetes.io/is-default-class: "true"}}}`,
		want:    `{"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"}`,
		columns: "Name, Provisioner, ReclaimPolicy, VolumeBindingMode, AllowVolumeExpansion, Age", row: "a (default) | x.io/y | Delete | Immediate | false",
	},
	{
		resource: "volumeattributesclasses.v1.storage.k8s.io", short: "vac", object: `{driverName: d.io, parameters: {a: b}}`, columns: "Name, DriverName, Age", row: "a | d.io",
	},
	{
		resource: "csidrivers.v1.storage.k8s.io", object: `spec: {podInfoOnMount: true}`,
		want: `{"spec": {"attachRequired": true, "podInfoOnMount": true, "storageCapacity": false, "fsGroupPolicy": "ReadWriteOnceWithFSType", "volumeLifecycleModes": ["Persistent"],
			"requiresRepublish": false, "seLinuxMount": false}}`,
		columns: "Name, AttachRequired, PodInfoOnMount, StorageCapacity, TokenRequests, RequiresRepublish, Modes, Age", row: "a | true | true | false | <unset> | false | Persistent",
	},
	{
		resource: "csinodes.v1.storage.k8s.io", object: `spec: {drivers: [{name: d.io, nodeID: id, topologyKeys: [z]}]}`, columns: "Name, Drivers, Age", row: "a | 1",
	},
	{
		resource: "csistoragecapacities.v1.storage.k8s.io", object: `{storageClassName: sc, capacity: 1Gi}`, columns: "Name, StorageClassName, Capacity, Age", row: "a | sc | 1Gi",
	},
	{
		resource: "volumeattachments.v1.storage.k8s.io", subs: "status", object: `spec: {attacher: d.io, nodeName: node, source: {persistentVolumeName: v}}`, status: `{attached: true}`,
		columns: "Name, Attacher, PV, Node, Attached, Age", row: "a | d.io | v | node | true",
	},
	{
		resource: "statefulsets.v1.apps", short: "sts category/all", subs: "scale status", generation: true, object: `spec: {serviceName: s, selector: ` + selector + `, template: ` + podTemplate + `,
			volumeClaimTemplates: [{metadata: {name: v}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]}`,
		want: `{"spec": {"replicas": 1, "podManagementPolicy": "OrderedReady", "revisionHistoryLimit": 10, "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
			"persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"}}}`,
		status: `{replicas: 1, readyReplicas: 1}`, columns: "Name, Ready, Age, Containers*, Images*", row: "a | 1/1 | c | i",
	},
	{
		resource: "daemonsets.v1.apps", short: "ds category/all", subs: "status", generation: true, object: `spec: {selector: ` + selector + `, template: ` + podTemplate + `}`,
		want:    `{"spec": {"revisionHistoryLimit": 10, "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}}}}`,
		status:  `{desiredNumberScheduled: 3, currentNumberScheduled: 2, numberReady: 1, numberMisscheduled: 0}`,
		columns: "Name, Desired, Current, Ready, Up-to-date, Available, Node Selector, Age, Containers*, Images*, Selector*", row: "a | 3 | 2 | 1 | 0 | 0 | <none> | c | i | app=a",
	},
	{
		resource: "controllerrevisions.v1.apps", object: `{data: {a: b}, revision: 3}`, columns: "Name, Controller, Revision, Age", row: "a | <none> | 3",
	},
	{
		resource: "jobs.v1.batch", short: "category/all", subs: "status", generation: true, object: `spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}`,
		want:    `{"spec": {"completions": 1, "parallelism": 1, "backoffLimit": 6, "completionMode": "NonIndexed", "suspend": false, "manualSelector": false, "podReplacementPolicy": "TerminatingOrFailed"}}`,
		status:  `{active: 1, ready: 1}`,
		columns: "Name, Status, Completions, Duration, Age, Containers*, Images*, Selector*",
	},
	{
		resource: "cronjobs.v1.batch", short: "cj category/all", subs: "status", generation: true,
		object: `spec: {schedule: "*/5 * * * *", jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}}`,
		want:   `{"spec": {"concurrencyPolicy": "Allow", "suspend": false, "successfulJobsHistoryLimit": 3, "failedJobsHistoryLimit": 1}}`,
		status: `{lastScheduleTime: null}`, columns: "Name, Schedule, Timezone, Suspend, Active, Last Schedule, Age, Containers*, Images*, Selector*",
		row: "a | */5 * * * * | <none> | False | 0 | <none> | c | i | <none>",
	},
	{
		resource: "horizontalpodautoscalers.v2.autoscaling", short: "hpa category/all", subs: "status", object: `spec: {maxReplicas: 3, scaleTargetRef: {kind: Deployment, name: d, apiVersion: apps/v1}}`,
		want:    `{"spec": {"minReplicas": 1, "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}]}}`,
		status:  `{currentReplicas: 2, desiredReplicas: 2, currentMetrics: null}`,
		columns: "Name, Reference, Targets, MinPods, MaxPods, Replicas, Age", row: "a | Deployment/d | cpu: <unknown>/80% | 1 | 3 | 2",
	},
	{
		resource: "horizontalpodautoscalers.v1.autoscaling", short: "hpa category/all", subs: "status", object: `spec: {maxReplicas: 3, targetCPUUtilizationPercentage: 50, scaleTargetRef: {kind: Deployment, name: d}}`,
		want: `{"spec": {"minReplicas": 1, "targetCPUUtilizationPercentage": 50}}`, status: `{currentReplicas: 2, desiredReplicas: 2, currentCPUUtilizationPercentage: 40}`,
		columns: "Name, Reference, Targets, MinPods, MaxPods, Replicas, Age", row: "a | Deployment/d | cpu: 40%/50% | 1 | 3 | 2",
	},
}
