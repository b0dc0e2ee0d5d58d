// Package cgroup makes the cgroups in which pods run: those of the node, of the QoS classes and of each pod. The container runtime makes those of the
// containers below, whichever runtime it is.
//
//	bayplan/CLUSTER/NODE              CPU share as the node's allocatable CPU
//	    helpers/                      made by the embedded runtime
//	    podUID/                       guaranteed pods: share, quota and limits of the whole pod
//	    burstable/                    share: the sum of what its pods ask for
//	        podUID/
//	    besteffort/                   share: the least there is
//	        podUID/
//
// CPU shares count among siblings only. So each level has to have its own, or a pod's requests would mean something within the pod alone.
//
// Hierarchies knows how the machine has cgroups mounted: one for each controller of version 1 (beside which there may be a version 2 without controllers), or
// version 2 with all. A path means the same cgroup in each of them. Node holds the values of one node's tree. All of it is idempotent: what is there is
// brought to the wanted state, what is gone needs no removal, and nothing is removed while a process is in it.
package cgroup
