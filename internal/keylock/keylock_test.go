package keylock

import (
	"fmt"
	"sync"
	"testing"
)

// Under one key one works at a time, under several many do, and nothing is left.
func TestKeyed(t *testing.T) {
	var k Locks
	inside := make([]int, 4) // guarded by the key's lock: the race detector sees a failure too
	var wg sync.WaitGroup
	for i := range 400 {
		wg.Go(func() {
			key := i % len(inside)
			defer k.Lock(fmt.Sprint(key))()
			if inside[key]++; inside[key] != 1 {
				t.Errorf("%d hold key %d", inside[key], key)
			}
			inside[key]--
		})
	}
	wg.Wait()
	if len(k.locks) != 0 {
		t.Errorf("locks are left: %v", k.locks)
	}
	first := k.Lock("a")
	k.Lock("b")()
	first()
}
