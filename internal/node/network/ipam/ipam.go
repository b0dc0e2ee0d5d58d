// Package ipam hands out the addresses of one prefix to owners that are named by a string, and remembers across crashes who has which.
//
// A Pool keeps its state in one file, a log of lines
//
//	take OWNER ADDRESS
//	free ADDRESS
//
// Take appends its line and forces it to disk before it returns the address, so that after a crash no address is given to a second owner.
// Free only appends: should that line be lost, the owner still has its address, and whoever reconciles owners frees it again. Open replays the log, drops a
// last line that a crash cut off, and writes the log anew in its shortest form; so does Take when the log has grown long.
//
// Addresses are reused late: first come those that were never used, in order, then those that were freed longest ago. Whoever still
// talks to a former owner's address so has most time to notice that it is gone. The order is in the log and survives restarts.
//
// Left out are the prefix's own address, the one after it, which by custom is the gateway's (see First), and IPv4's broadcast address.
package ipam

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/bayplan/bayplan/internal/atomicfile"
)

// ErrExhausted is what Take answers when every address is taken.
var ErrExhausted = errors.New("all addresses are taken")

// compactSlack is how many lines more than necessary the log may have before it is written anew.
const compactSlack = 1000

// Pool hands out the addresses of a prefix. Its methods may be called by many goroutines at once. Only one Pool may use a file at a time.
type Pool struct {
	path string
	mu   sync.Mutex
	file *os.File // open for appending; nil after Close
	size int64    // of the file, up to which it is whole
	*book
}

// Open restores the pool that is kept in the file at path, or begins one. The prefix may differ from that of an earlier Open: owners keep
// what they have, and new addresses come from the new prefix.
func Open(path string, prefix netip.Prefix) (*Pool, error) {
	if !prefix.IsValid() {
		return nil, fmt.Errorf("address pool %s: the prefix is missing", path)
	}
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("address pool %s: %w", path, err)
	}
	book, err := replay(data, prefix)
	if err != nil {
		return nil, fmt.Errorf("address pool %s: %w; remove the file when none of its owners runs any more", path, err)
	}
	p := &Pool{path: path, book: book}
	if err := p.compact(); err != nil {
		return nil, err
	}
	return p, nil
}

// First is the first address of the prefix that a host can have. No pool hands it out.
func First(prefix netip.Prefix) netip.Addr { return prefix.Masked().Addr().Next() }

// Take gives the owner an address, the same as before when it has one. The address is on disk when Take returns.
func (p *Pool) Take(owner string) (netip.Addr, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if addr, ok := p.owners[owner]; ok {
		return addr, nil
	}
	if owner == "" || strings.ContainsAny(owner, " \t\r\n") {
		return netip.Addr{}, fmt.Errorf("address pool %s: owner %q: want a name without white space", p.path, owner)
	}
	if p.lines > 2*len(p.seen)+compactSlack {
		if err := p.compact(); err != nil {
			return netip.Addr{}, err
		}
	}
	addr, ok := p.candidate()
	if !ok {
		return netip.Addr{}, fmt.Errorf("address pool %s: no address of %s for %s: %w (%d owners)", p.path, p.prefix, owner, ErrExhausted, len(p.owners))
	}
	if err := p.append(takeLine(owner, addr), true); err != nil {
		return netip.Addr{}, err
	}
	return addr, p.take(owner, addr)
}

// Free takes the owner's address back. Freeing what an owner doesn't have is no error.
func (p *Pool) Free(owner string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	addr, ok := p.owners[owner]
	if !ok {
		return nil
	}
	if err := p.append(freeLine(addr), false); err != nil {
		return err
	}
	return p.free(addr)
}

// Lookup tells which address the owner has.
func (p *Pool) Lookup(owner string) (netip.Addr, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	addr, ok := p.owners[owner]
	return addr, ok
}

// Owners lists who has an address, in order.
func (p *Pool) Owners() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	owners := make([]string, 0, len(p.owners))
	for owner := range p.owners {
		owners = append(owners, owner)
	}
	slices.Sort(owners)
	return owners
}

// Close closes the file. What was taken stays taken.
func (p *Pool) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.file == nil {
		return nil
	}
	err := p.file.Close()
	p.file = nil
	return err
}

// append writes a line at the end of the log. When that fails the file is cut back to its former size, so that a part of a line never
// stands in the middle of the log; when even that fails the pool is closed, and the next Open drops the part.
func (p *Pool) append(line string, sync bool) error {
	if p.file == nil {
		return fmt.Errorf("address pool %s: %w", p.path, os.ErrClosed)
	}
	_, err := p.file.WriteString(line)
	if err == nil && sync {
		err = p.file.Sync()
	}
	if err == nil {
		p.size += int64(len(line))
		return nil
	}
	if cut := p.file.Truncate(p.size); cut != nil {
		err = errors.Join(err, cut, p.file.Close())
		p.file = nil
	}
	return fmt.Errorf("address pool %s: %w", p.path, err)
}

// compact writes the log in its shortest form and opens it for appending.
func (p *Pool) compact() error {
	if p.file != nil {
		if err := p.file.Close(); err != nil {
			return fmt.Errorf("address pool %s: %w", p.path, err)
		}
		p.file = nil
	}
	data := p.snapshot()
	if err := atomicfile.Write(p.path, data, 0o600); err != nil {
		return fmt.Errorf("address pool: %w", err)
	}
	file, err := os.OpenFile(p.path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return fmt.Errorf("address pool: %w", err)
	}
	p.file, p.size = file, int64(len(data))
	return nil
}
