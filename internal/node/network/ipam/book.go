package ipam

import (
	"bytes"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
)

// book is what a log says: who has which address, and in which order addresses come next.
type book struct {
	prefix netip.Prefix
	last   netip.Addr // the highest address that may be handed out
	owners map[string]netip.Addr
	seen   map[netip.Addr]string // every address that was ever used, with its owner, or "" when it is free
	freed  []netip.Addr          // the free ones of seen, the longest freed first
	fresh  netip.Addr            // no address below it is unseen
	lines  int                   // of the log
}

func newBook(prefix netip.Prefix) *book {
	prefix = prefix.Masked()
	return &book{
		prefix: prefix,
		last:   lastUsable(prefix),
		owners: map[string]netip.Addr{},
		seen:   map[netip.Addr]string{},
		fresh:  First(prefix).Next(),
	}
}

// lastUsable is the last address of the prefix, or the one before it for IPv4, where the last one means broadcast.
func lastUsable(prefix netip.Prefix) netip.Addr {
	raw := prefix.Addr().AsSlice()
	for bit := prefix.Bits(); bit < 8*len(raw); bit++ {
		raw[bit/8] |= 0x80 >> (bit % 8)
	}
	last, _ := netip.AddrFromSlice(raw)
	if last.Is4() {
		return last.Prev()
	}
	return last
}

// replay reads a log. A last line that doesn't end is the work of a crash and is left out; any other line that makes no sense is an error.
func replay(data []byte, prefix netip.Prefix) (*book, error) {
	b := newBook(prefix)
	whole := data[:bytes.LastIndexByte(data, '\n')+1]
	number := 0
	for line := range strings.Lines(string(whole)) {
		number++
		if err := b.apply(strings.Fields(line)); err != nil {
			return nil, fmt.Errorf("line %d, %q: %w", number, strings.TrimSuffix(line, "\n"), err)
		}
	}
	return b, nil
}

// apply does what one line of the log says.
func (b *book) apply(fields []string) error {
	switch {
	case len(fields) == 3 && fields[0] == "take":
		addr, err := netip.ParseAddr(fields[2])
		if err != nil {
			return err
		}
		return b.take(fields[1], addr)
	case len(fields) == 2 && fields[0] == "free":
		addr, err := netip.ParseAddr(fields[1])
		if err != nil {
			return err
		}
		return b.free(addr)
	}
	return fmt.Errorf("neither take OWNER ADDRESS nor free ADDRESS")
}

// candidate is the address that comes next.
func (b *book) candidate() (netip.Addr, bool) {
	for ; b.inRange(b.fresh); b.fresh = b.fresh.Next() {
		if _, seen := b.seen[b.fresh]; !seen {
			return b.fresh, true
		}
	}
	if len(b.freed) > 0 {
		return b.freed[0], true
	}
	return netip.Addr{}, false
}

// take enters an owner.
func (b *book) take(owner string, addr netip.Addr) error {
	other, seen := b.seen[addr]
	if other != "" {
		return fmt.Errorf("%s has address %s already", other, addr)
	}
	if had, ok := b.owners[owner]; ok {
		return fmt.Errorf("%s has address %s already", owner, had)
	}
	if seen {
		i := slices.Index(b.freed, addr)
		b.freed = slices.Delete(b.freed, i, i+1)
	}
	b.owners[owner], b.seen[addr] = addr, owner
	b.lines++
	return nil
}

// free enters that nobody has the address any more. Of an address that nobody had it says that somebody had it once: so the shortest form
// of a log begins.
func (b *book) free(addr netip.Addr) error {
	owner, seen := b.seen[addr]
	if seen && owner == "" {
		return fmt.Errorf("address %s is free already", addr)
	}
	delete(b.owners, owner)
	delete(b.seen, addr)
	if b.inRange(addr) {
		b.seen[addr] = ""
		b.freed = append(b.freed, addr)
	}
	b.lines++
	return nil
}

// inRange tells whether the address may be handed out at all.
func (b *book) inRange(addr netip.Addr) bool {
	return addr.IsValid() && b.prefix.Contains(addr) && addr.Compare(First(b.prefix)) > 0 && addr.Compare(b.last) <= 0
}

// snapshot is the shortest log that says the same: what is free, the longest first, then the owners in the order of their addresses.
func (b *book) snapshot() []byte {
	var out bytes.Buffer
	for _, addr := range b.freed {
		out.WriteString(freeLine(addr))
	}
	for _, addr := range slices.SortedFunc(maps.Values(b.owners), netip.Addr.Compare) {
		out.WriteString(takeLine(b.seen[addr], addr))
	}
	b.lines = len(b.seen)
	return out.Bytes()
}

func takeLine(owner string, addr netip.Addr) string { return fmt.Sprintf("take %s %s\n", owner, addr) }
func freeLine(addr netip.Addr) string               { return fmt.Sprintf("free %s\n", addr) }
