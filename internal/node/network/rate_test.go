package network

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestBuckets(t *testing.T) {
	for _, test := range []struct {
		bits    uint64
		mtu     int
		want    bucket
		wantErr string
	}{
		{40_000_000, 1500, bucket{rate: 5_000_000, burst: 100_000, limit: 350_000}, ""},
		{1_000_000, 1500, bucket{rate: 125_000, burst: 6000, limit: 71536}, ""},
		{10_000_000_000, 1500, bucket{rate: 1_250_000_000, burst: 25_000_000, limit: 87_500_000}, ""},
		{0, 1500, bucket{}, "too low"},
		{999, 1500, bucket{}, "too low"},
		{1_000_000_000_000_000, 1500, bucket{}, "too high"},
	} {
		got, err := newBucket(test.bits, test.mtu)
		if got != test.want || (err == nil) != (test.wantErr == "") || err != nil && !strings.Contains(err.Error(), test.wantErr) {
			t.Errorf("%d bit/s: %+v, %v; want %+v, %q", test.bits, got, err, test.want, test.wantErr)
		}
	}
	if _, err := (bucket{rate: 125, burst: 4 * 65535}).ticks(15.625); err == nil {
		t.Error("a bucket that takes half an hour to fill is accepted")
	}
}

// Every bucket takes the largest packet, and lets no more through at once than its share of a second or a few packets.
func TestBucketProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mtu := rapid.IntRange(576, 9000).Draw(t, "mtu")
		bits := rapid.Uint64Range(minimumRate, 100_000_000_000).Draw(t, "bits")
		b, err := newBucket(bits, mtu)
		if err != nil {
			t.Fatal(err)
		}
		if b.burst < uint32(mtu) || b.limit < b.burst+queueBytes {
			t.Fatalf("%+v is too small for packets of %d bytes", b, mtu)
		}
		if uint64(b.burst) > max(bits/8*uint64(burstTime)/uint64(time.Second), burstPackets*uint64(mtu)) {
			t.Fatalf("%+v lets too much through at once", b)
		}
		const tick = 15.625 // of Linux: 64 ns
		ticks, err := b.ticks(tick)
		if err != nil {
			t.Skip("too slow for packets of this size")
		}
		if back := float64(ticks) / tick / 1e6 * float64(b.rate); back < float64(mtu) {
			t.Fatalf("after rounding the bucket holds %f bytes, less than a packet", back)
		}
	})
}
