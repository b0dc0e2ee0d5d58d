package controller

import (
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

// Counter makes a counter under the name that Kubernetes has for it, which dashboards know, and registers it where those of the libraries are (the queues' own,
// workqueue_*, among them). It counts for the whole process, and so it is made once, in a variable of its package.
func Counter(subsystem, name, help string, labels ...string) *metrics.CounterVec {
	c := metrics.NewCounterVec(&metrics.CounterOpts{Subsystem: subsystem, Name: name, Help: help, StabilityLevel: metrics.ALPHA}, labels)
	legacyregistry.MustRegister(c)
	return c
}

// Histogram is to durations in seconds what Counter is to counts.
func Histogram(subsystem, name, help string, buckets []float64) *metrics.Histogram {
	h := metrics.NewHistogram(&metrics.HistogramOpts{Subsystem: subsystem, Name: name, Help: help, Buckets: buckets, StabilityLevel: metrics.ALPHA})
	legacyregistry.MustRegister(h)
	return h
}
