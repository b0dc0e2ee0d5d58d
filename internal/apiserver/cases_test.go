package apiserver_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"strings"
)

// testedElsewhere are resources that are asked and not stored, or that have tests of their own.
var testedElsewhere = []string{
	"tokenreviews.v1.authentication.k8s.io", "selfsubjectreviews.v1.authentication.k8s.io", "subjectaccessreviews.v1.authorization.k8s.io",
	"localsubjectaccessreviews.v1.authorization.k8s.io", "selfsubjectaccessreviews.v1.authorization.k8s.io", "selfsubjectrulesreviews.v1.authorization.k8s.io",
	"customresourcedefinitions.v1.apiextensions.k8s.io",
}

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
		resource: "serviceaccounts.v1", short: "sa", subs: "token", object: `automountServiceAccountToken: true`, columns: "Name, Secrets, Age", row: "a | 0",
	},
	{
		resource: "namespaces.v1", short: "ns", subs: "finalize status", name: "an", object: `spec: {finalizers: [kubernetes]}`, want: `{"spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"},
			"metadata": {"labels": {"kubernetes.io/metadata.name": "an"}}}`,
		status: `{conditions: [{type: X, status: "True", lastTransitionTime: null}]}`, columns: "Name, Status, Age", row: "an | Active",
	},
	{
		resource: "nodes.v1", short: "no", subs: "proxy status", object: `spec: {unschedulable: true}`, status: `{phase: Running}`,
		columns: "Name, Status, Roles, Age, Version, Internal-IP*, External-IP*, OS-Image*, Kernel-Version*, Container-Runtime*",
	},
	{
		resource: "pods.v1", short: "po category/all", subs: "attach binding ephemeralcontainers eviction exec log portforward proxy resize status", generation: true,
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
		resource: "services.v1", short: "svc category/all", subs: "proxy status", object: `spec: {ports: [{port: 80}], selector: {app: a}}`,
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
	{
		resource: "ingresses.v1.networking.k8s.io", short: "ing", subs: "status", generation: true,
		object:  `spec: {tls: [{secretName: t}], rules: [{host: a.io, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: s, port: {number: 80}}}}]}}]}`,
		status:  `{loadBalancer: {ingress: [{ip: 10.1.0.1}]}}`,
		columns: "Name, Class, Hosts, Address, Ports, Age", row: "a | <none> | a.io | 10.1.0.1 | 80, 443",
	},
	{
		resource: "ingressclasses.v1.networking.k8s.io", generation: true, object: `spec: {controller: a.io/b, parameters: {apiGroup: g.io, kind: K, name: p}}`,
		want: `{"spec": {"parameters": {"scope": "Cluster"}}}`, columns: "Name, Controller, Parameters, Age", row: "a | a.io/b | K.g.io/p",
	},
	{
		resource: "networkpolicies.v1.networking.k8s.io", short: "netpol", generation: true, object: `spec: {podSelector: ` + selector + `, egress: [{ports: [{port: 80}]}]}`,
		want: `{"spec": {"policyTypes": ["Ingress", "Egress"], "egress": [{"ports": [{"port": 80, "protocol": "TCP"}]}]}}`, columns: "Name, Pod-Selector, Age", row: "a | app=a",
	},
	{
		resource: "runtimeclasses.v1.node.k8s.io", object: `handler: h`, columns: "Name, Handler, Age", row: "a | h",
	},
	{
		resource: "storageversionmigrations.v1.storagemigration.k8s.io", subs: "status", object: `spec: {resource: {group: apps, resource: deployments}}`,
		status: `{conditions: [{type: X, status: "True", reason: R, message: m, lastTransitionTime: "2026-01-01T00:00:00Z"}]}`, columns: "Name, Resource, Age", row: "a | deployments.apps",
	},
	{
		resource: "certificatesigningrequests.v1.certificates.k8s.io", short: "csr", subs: "approval status",
		object: `spec: {signerName: a.io/b, usages: [client auth], expirationSeconds: 3600, username: forged, request: ` + certificateRequest() + `}`,
		want:   `{"spec": {"username": "tester"}}`, status: `{conditions: [{type: Failed, status: "True", lastUpdateTime: "2026-01-01T00:00:00Z", lastTransitionTime: "2026-01-01T00:00:00Z"}]}`,
		columns: "Name, Age, SignerName, Requestor, RequestedDuration, Condition", row: "a | a.io/b | tester | 60m | Pending,Failed",
	},
	{
		resource: "clustertrustbundles.v1.certificates.k8s.io", name: "a.io:b:c", object: `spec: {signerName: a.io/b, trustBundle: "` + trustBundle() + `"}`,
		columns: "Name, SignerName, Age", row: "a.io:b:c | a.io/b",
	},
	{
		resource: "podcertificaterequests.v1.certificates.k8s.io", subs: "status", generation: true,
		object: `spec: {signerName: a.io/b, podName: p, podUID: u, serviceAccountName: s, serviceAccountUID: u, nodeName: node, nodeUID: u, stubPKCS10Request: ` + stubRequest() + `}`,
		want:   `{"spec": {"maxExpirationSeconds": 86400}}`, status: `{conditions: [{type: Denied, status: "True", reason: r, message: m, lastTransitionTime: "2026-01-01T00:00:00Z"}]}`,
		columns: "Name, PodName, ServiceAccountName, NodeName, SignerName, State, Age", row: "a | p | s | node | a.io/b | Denied",
	},
	{
		resource: "flowschemas.v1.flowcontrol.apiserver.k8s.io", subs: "status", generation: true,
		object: `spec: {priorityLevelConfiguration: {name: p}, rules: [{subjects: [{kind: Group, group: {name: g}}], nonResourceRules: [{verbs: [get], nonResourceURLs: [/x]}]}]}`,
		want:   `{"spec": {"matchingPrecedence": 1000}}`, status: `{conditions: [{type: Dangling, status: "True", lastTransitionTime: null}]}`,
		columns: "Name, PriorityLevel, MatchingPrecedence, DistinguisherMethod, Age, MissingPL", row: "a | p | 1000 | <none> | True",
	},
	{
		resource: "prioritylevelconfigurations.v1.flowcontrol.apiserver.k8s.io", subs: "status", generation: true, object: `spec: {type: Limited, limited: {limitResponse: {type: Queue, queuing: {}}}}`,
		want:    `{"spec": {"limited": {"nominalConcurrencyShares": 30, "lendablePercent": 0, "limitResponse": {"queuing": {"queues": 64, "handSize": 8, "queueLengthLimit": 50}}}}}`,
		status:  `{conditions: [{type: X, status: "True", lastTransitionTime: null}]}`,
		columns: "Name, Type, NominalConcurrencyShares, Queues, HandSize, QueueLengthLimit, Age", row: "a | Limited | 30 | 64 | 8 | 50",
	},
	{
		resource: "validatingwebhookconfigurations.v1.admissionregistration.k8s.io", short: "category/api-extensions", generation: true,
		object: `webhooks: [{name: a.b.c, sideEffects: None, admissionReviewVersions: [v1], clientConfig: {service: {name: s, namespace: ns}},
			rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [pods]}], objectSelector: {matchLabels: {never: matches}}}]`,
		columns: "Name, Webhooks, Age", row: "a | 1",
	},
	{
		resource: "mutatingwebhookconfigurations.v1.admissionregistration.k8s.io", short: "category/api-extensions", generation: true,
		object: `webhooks: [{name: a.b.c, sideEffects: None, admissionReviewVersions: [v1], clientConfig: {url: "https://x.io"}}]`, columns: "Name, Webhooks, Age", row: "a | 1",
	},
	{
		resource: "validatingadmissionpolicies.v1.admissionregistration.k8s.io", short: "category/api-extensions", subs: "status", generation: true,
		object: `spec: {validations: [{expression: "true"}], matchConstraints: {resourceRules: [{operations: [CREATE], apiGroups: [x.io], apiVersions: [v1], resources: [xs]}]}}`,
		want:   `{"spec": {"failurePolicy": "Fail", "matchConstraints": {"matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {}}}}`,
		status: `{observedGeneration: 1}`, columns: "Name, Validations, ParamKind, Age", row: "a | 1 | <unset>",
	},
	{
		resource: "validatingadmissionpolicybindings.v1.admissionregistration.k8s.io", short: "category/api-extensions", generation: true,
		object: `spec: {policyName: p, validationActions: [Deny]}`, columns: "Name, PolicyName, ParamRef, Age", row: "a | p | <unset>",
	},
	{
		resource: "mutatingadmissionpolicies.v1.admissionregistration.k8s.io", short: "category/api-extensions", generation: true,
		object: `spec: {reinvocationPolicy: Never, mutations: [{patchType: JSONPatch, jsonPatch: {expression: "[]"}}],
			matchConstraints: {resourceRules: [{operations: [CREATE], apiGroups: [x.io], apiVersions: [v1], resources: [xs]}]}}`,
		want: `{"spec": {"failurePolicy": "Fail"}}`, columns: "Name, Mutations, ParamKind, Age", row: "a | 1 | <unset>",
	},
	{
		resource: "mutatingadmissionpolicybindings.v1.admissionregistration.k8s.io", short: "category/api-extensions", generation: true, object: `spec: {policyName: p}`,
		columns: "Name, PolicyName, ParamRef, Age", row: "a | p | <unset>",
	},
	{
		resource: "deviceclasses.v1.resource.k8s.io", generation: true, object: `spec: {selectors: [{cel: {expression: "true"}}]}`, columns: "Name, Age",
	},
	{
		resource: "devicetaintrules.v1.resource.k8s.io", subs: "status", generation: true, object: `spec: {taint: {key: a/b, effect: NoExecute}, deviceSelector: {driver: d.io}}`,
		status: `{conditions: [{type: EvictionInProgress, status: "True", reason: r, message: m, lastTransitionTime: "2026-01-01T00:00:00Z"}]}`, columns: "Name, Age",
	},
	{
		resource: "resourceclaims.v1.resource.k8s.io", subs: "status", object: `spec: {devices: {requests: [{name: r, exactly: {deviceClassName: d}}]}}`,
		want:   `{"spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "d", "allocationMode": "ExactCount", "count": 1}}]}}}`,
		status: `{allocation: {devices: {results: [{request: r, driver: d.io, pool: p, device: x}]}}}`, columns: "Name, State, Age", row: "a | allocated",
	},
	{
		resource: "resourceclaimtemplates.v1.resource.k8s.io", object: `spec: {spec: {devices: {requests: [{name: r, exactly: {deviceClassName: d}}]}}}`, columns: "Name, Age",
	},
	{
		resource: "resourceslices.v1.resource.k8s.io", generation: true, object: `spec: {driver: d.io, nodeName: node, pool: {name: p, resourceSliceCount: 1, generation: 1}, devices: [{name: x}]}`,
		columns: "Name, Node, Driver, Pool, Age", row: "a | node | d.io | p",
	},
}

// certificateRequest is a request in PEM in base64, as it stands in YAML.
func certificateRequest() string {
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: requestDER()}))
}

// stubRequest is a request for a certificate as nodes write it for pods: DER, not PEM.
func stubRequest() string { return base64.StdEncoding.EncodeToString(requestDER()) }

func requestDER() []byte {
	key, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	der, _ := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "c"}}, key)
	return der
}

// trustBundle is a certificate in PEM, as it stands in a quoted text of YAML.
func trustBundle() string {
	key, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true}
	der, _ := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	return strings.ReplaceAll(string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), "\n", "\\n")
}
