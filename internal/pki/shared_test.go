package pki

import (
	"bytes"
	"sync"
	"testing"

	testingclock "k8s.io/utils/clock/testing"
)

// TestServersThatStartAtOnce: servers that share an empty directory come to have the same authority, identities and signing key.
func TestServersThatStartAtOnce(t *testing.T) {
	const servers = 8
	type made struct{ ca, cert, key, signing []byte }
	for range 20 {
		dir := t.TempDir()
		var got [servers]made
		var group sync.WaitGroup
		for i := range servers {
			group.Go(func() {
				a, err := Open(dir, testingclock.NewFakePassiveClock(start))
				if err != nil {
					t.Error(err)
					return
				}
				identity, err := a.Identity("apiserver", Request{User: "u", Names: []string{"localhost"}})
				if err != nil {
					t.Error(err)
				}
				key, err := a.SigningKey("sa")
				if err != nil {
					t.Error(err)
					return
				}
				signing, err := encodeKey(key)
				if err != nil {
					t.Error(err)
				}
				got[i] = made{a.CertPEM(), identity.CertPEM, identity.KeyPEM, signing}
			})
		}
		group.Wait()
		for i, g := range got {
			if !bytes.Equal(g.ca, got[0].ca) || !bytes.Equal(g.cert, got[0].cert) || !bytes.Equal(g.key, got[0].key) || !bytes.Equal(g.signing, got[0].signing) {
				t.Fatalf("server %d has other keys than server 0", i)
			}
		}
	}
}
