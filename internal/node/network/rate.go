package network

import (
	"fmt"
	"math"
	"time"
)

// minimumRate is the lowest bandwidth that can be asked for, in bits a second, as with Kubernetes' annotations.
const minimumRate = 1000

// A bucket holds what flows in burstTime, or burstPackets of the largest size where that is more; a queue behind it takes what flows in
// queueTime. A larger bucket would let more pass at once than was asked for, a smaller one would cost a timer for each packet.
const (
	burstTime    = 20 * time.Millisecond
	burstPackets = 4
	queueTime    = 50 * time.Millisecond
	queueBytes   = 64 << 10 // at least: the largest packet before segmentation
)

// bucket is a token bucket that lets a certain bandwidth through.
type bucket struct {
	rate  uint64 // bytes a second
	burst uint32 // bytes
	limit uint32 // bytes that wait or pass at once; more is dropped
}

// newBucket computes the bucket for a bandwidth in bits a second on a link of the MTU.
func newBucket(bitsPerSecond uint64, mtu int) (bucket, error) {
	if bitsPerSecond < minimumRate {
		return bucket{}, fmt.Errorf("a bandwidth of %d bit/s is too low: want at least %d, or 0 for no limit", bitsPerSecond, minimumRate)
	}
	rate := bitsPerSecond / 8
	burst := max(share(rate, burstTime), burstPackets*uint64(mtu))
	limit := burst + max(share(rate, queueTime), queueBytes)
	if limit > math.MaxUint32 {
		return bucket{}, fmt.Errorf("a bandwidth of %d bit/s is too high for a token bucket: leave it out", bitsPerSecond)
	}
	return bucket{rate: rate, burst: uint32(burst), limit: uint32(limit)}, nil
}

// share is how many bytes flow in a part of a second.
func share(rate uint64, part time.Duration) uint64 { return rate / uint64(time.Second/part) }

// ticks is how long the bucket takes to fill, in the kernel's packet-scheduler ticks.
func (b bucket) ticks(tickPerMicrosecond float64) (uint32, error) {
	ticks := float64(b.burst) / float64(b.rate) * 1e6 * tickPerMicrosecond
	if ticks > math.MaxUint32 {
		return 0, fmt.Errorf("a bandwidth of %d bit/s is too low for packets of this size", 8*b.rate)
	}
	return uint32(ticks), nil
}
