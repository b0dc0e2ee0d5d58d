package ledger

import "math/bits"

// Bitmap is a set of slots.
type Bitmap []uint64

// Words returns how many words a bitmap for n slots has.
func Words(n int) int { return (n + 63) / 64 }

// Has reports whether a slot is in the set.
func (b Bitmap) Has(slot int32) bool { return b[slot>>6]&(1<<(slot&63)) != 0 }

// Set adds a slot.
func (b Bitmap) Set(slot int32) { b[slot>>6] |= 1 << (slot & 63) }

// Clear removes a slot.
func (b Bitmap) Clear(slot int32) { b[slot>>6] &^= 1 << (slot & 63) }

// Put adds or removes a slot.
func (b Bitmap) Put(slot int32, in bool) {
	if in {
		b.Set(slot)
		return
	}
	b.Clear(slot)
}

// Count returns the size of the set.
func (b Bitmap) Count() int {
	n := 0
	for _, word := range b {
		n += bits.OnesCount64(word)
	}
	return n
}

// Each calls do for every slot in the set, in order.
func (b Bitmap) Each(do func(slot int32)) {
	for i, word := range b {
		for ; word != 0; word &= word - 1 {
			do(int32(i<<6 + bits.TrailingZeros64(word)))
		}
	}
}

// grow returns the bitmap with room for n slots.
func (b Bitmap) grow(n int) Bitmap {
	for len(b) < Words(n) {
		b = append(b, 0)
	}
	return b
}
