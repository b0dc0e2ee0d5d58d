package core_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/bayplan/bayplan/internal/scheduler/transcript"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// BenchmarkRestart measures what a scheduler that starts anew has to do with what it is told: 5,000 nodes, 140,000 pods
// that run, and the first decision.
func BenchmarkRestart(b *testing.B) {
	var nodes []*v1.Node
	for i := range 5000 {
		nodes = append(nodes, transcript.Node(b, fmt.Sprintf("node-%d", i), "cpu=32", "memory=128Gi", "pods=110"))
	}
	var pods []*v1.Pod
	for i := range 140000 {
		words := []string{
			"cpu=100m", "memory=256Mi", fmt.Sprintf("labels=app=app-%d", i%300), fmt.Sprintf("on=node-%d", i%5000),
		}
		pod := transcript.Pod(b, "pod", words...)
		pod.UID = types.UID(fmt.Sprintf("7f3a6c1e-5b0d-4a55-9d3e-%012d", i))
		pods = append(pods, pod)
	}
	waiting := transcript.Pod(b, "waiting", "cpu=100m", "labels=app=app-1")
	now := time.Unix(1e9, 0)
	b.ReportAllocs()
	for b.Loop() {
		c := newCore()
		for _, node := range nodes {
			c.SetNode(node, now)
		}
		for _, pod := range pods {
			c.SetPod(pod, now)
		}
		c.SetPod(waiting, now)
		if attempt := c.Next(now); attempt.Node == "" {
			b.Fatal(attempt.Message())
		}
	}
}

// BenchmarkStorm measures whole decisions, from the event that tells of the pod to the one that tells that it is bound:
// 5,000 nodes, pods of 20 shapes in turn.
func BenchmarkStorm(b *testing.B) {
	c, now := newCore(), time.Unix(1e9, 0)
	for i := range 5000 {
		c.SetNode(transcript.Node(b, fmt.Sprintf("node-%d", i), "cpu=64", "memory=256Gi", "pods=1000"), now)
	}
	var shapes []*v1.Pod
	for i := range 20 {
		shapes = append(shapes, transcript.Pod(b, "pod", "cpu=10m", "memory=16Mi", fmt.Sprintf("labels=app=app-%d", i)))
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		i++
		pod := *shapes[i%len(shapes)]
		pod.UID = types.UID(fmt.Sprint(i))
		c.SetPod(&pod, now)
		attempt := c.Next(now)
		if attempt.Node == "" {
			b.Fatal(attempt.Message())
		}
		c.Bound(pod.UID, now)
		bound := pod
		bound.Spec.NodeName = attempt.Node
		c.SetPod(&bound, now)
		if i > 20000 {
			c.DeletePod(types.UID(fmt.Sprint(i-20000)), now)
		}
	}
}
