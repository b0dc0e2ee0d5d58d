package behavior

// Chance draws what is left to chance in the life of one pod. What is drawn depends on the seed, the pod's UID and what it is drawn for, and on nothing else: asked
// again, also by another process, the answer is the same. So a fleet that starts again finds its pods' fates as they were.
type Chance struct{ base uint64 }

// NewChance is the chance of a pod.
func NewChance(seed uint64, uid string) Chance { return Chance{hash(hashNumber(offset, seed), uid)} }

// of returns a number between 0 and 1, neither of them, for a purpose.
func (c Chance) of(what, container string, number int64) float64 {
	h := hashNumber(hash(hash(hashNumber(offset, c.base), what), container), uint64(number))
	return (float64(mix(h)>>11) + 0.5) / (1 << 53)
}

// FNV-1a, 64 bits.
const (
	offset = 14695981039346656037
	prime  = 1099511628211
)

// hash goes on with a text and its end.
func hash(h uint64, text string) uint64 {
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * prime
	}
	return (h ^ 0xff) * prime
}

func hashNumber(h, n uint64) uint64 {
	for range 8 {
		h = (h ^ n&0xff) * prime
		n >>= 8
	}
	return h
}

// mix spreads the bits: FNV's high bits hardly depend on its last input. The constants are those of splitmix64's finalizer.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
