package fleet

import (
	"fmt"
	"net/netip"
)

// addresses hands out the addresses of a prefix, those first that were not used for long.
type addresses struct {
	prefix netip.Prefix
	base   uint32
	size   uint32
	used   map[uint32]bool
	last   uint32
}

// newAddresses takes an IPv4 prefix. Its first and its last address are not handed out.
func newAddresses(prefix netip.Prefix) (*addresses, error) {
	if !prefix.IsValid() || !prefix.Addr().Is4() || prefix.Bits() > 30 {
		return nil, fmt.Errorf("%s: addresses come from an IPv4 prefix of at most 30 bits", prefix)
	}
	prefix = prefix.Masked()
	return &addresses{prefix: prefix, base: number(prefix.Addr()), size: 1 << (32 - prefix.Bits()), used: map[uint32]bool{}}, nil
}

func number(a netip.Addr) uint32 {
	b := a.As4()
	return uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
}

// take hands out an address, and none when all are used.
func (a *addresses) take() (string, bool) {
	if len(a.used) >= int(a.size)-2 {
		return "", false
	}
	for {
		a.last++
		if a.last >= a.size-1 {
			a.last = 1
		}
		if !a.used[a.last] {
			a.used[a.last] = true
			n := a.base + a.last
			return netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}).String(), true
		}
	}
}

// keep notes that an address is used, if it is one of these.
func (a *addresses) keep(text string) { a.mark(text, true) }

// free takes an address back.
func (a *addresses) free(text string) { a.mark(text, false) }

func (a *addresses) mark(text string, used bool) {
	ip, err := netip.ParseAddr(text)
	if err != nil || !a.prefix.Contains(ip) {
		return
	}
	if n := number(ip) - a.base; used {
		a.used[n] = true
	} else {
		delete(a.used, n)
	}
}
