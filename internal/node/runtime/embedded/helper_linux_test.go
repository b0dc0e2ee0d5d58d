package embedded

import (
	"os"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// TestTheFirstThreadStays checks that namespaces are never entered on the process's first thread, however many threads are in use.
func TestTheFirstThreadStays(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("entering namespaces needs root")
	}
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			err := inNamespaces([]string{"/proc/self/ns/uts"}, func() error {
				if unix.Gettid() == unix.Getpid() {
					t.Error("on the first thread")
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

func TestUnescapeMount(t *testing.T) {
	if got := unescapeMount(`/a\040b\134c\011`); got != "/a b\\c\t" {
		t.Errorf("got %q", got)
	}
}
