package plugin

// Advice is what stands between a pod and a node, for a person to act on.
type Advice struct {
	// Plugin is whose advice it is.
	Plugin string `json:"plugin"`
	// Reason is the reason as events give it.
	Reason string `json:"reason"`
	// Detail tells exactly what is in the way, and so what would have to change.
	Detail string `json:"detail"`
	// Missing are the amounts short, by resource, in milli-CPUs, bytes or units.
	Missing map[string]int64 `json:"missing,omitempty"`
	// Distance compares advice of one plugin: 0 is nearly there.
	Distance float64 `json:"distance"`
}

// Advisor is a filter that can say more about a rejection than its reason.
type Advisor interface {
	// Advise is called for a node that the filter rejects.
	Advise(slot int32) Advice
}
