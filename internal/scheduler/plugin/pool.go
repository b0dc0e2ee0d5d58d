package plugin

// Pool keeps counters that are no longer needed for the next shape, so that new shapes cost no memory. It belongs to one
// goroutine.
type Pool struct {
	free [][]int32
}

// pooled is how many lists are kept at most.
const pooled = 16

// Get returns a list of n zeros, old itself if it is long enough.
func (p *Pool) Get(old []int32, n int) []int32 {
	for cap(old) < n && len(p.free) > 0 {
		last := len(p.free) - 1
		old, p.free = p.free[last], p.free[:last]
	}
	if cap(old) < n {
		return make([]int32, n, n+n/8)
	}
	old = old[:n]
	clear(old)
	return old
}

// Put gives lists back.
func (p *Pool) Put(lists ...[]int32) {
	for _, list := range lists {
		if cap(list) > 0 && len(p.free) < pooled {
			p.free = append(p.free, list)
		}
	}
}

// Releaser is a filter or score that gives its counters back when its shape is forgotten.
type Releaser interface {
	Release()
}
