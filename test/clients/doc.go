// Package clients tests that programs of other people work with Bayplan: what they are made of is used here as they use it.
//
//	client-go            informers and leader election
//	controller-runtime   an operator with a custom resource
//	Helm                 a chart with a definition, hooks and waiting
//
// Each test has a cluster of its own, in the test's process (package testcluster). There are no nodes that run containers: kubelet_test.go says of pods
// what a node would say.
package clients
