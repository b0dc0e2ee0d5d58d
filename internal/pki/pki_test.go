package pki

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func open(t *testing.T, dir string, clock *testingclock.FakePassiveClock) *Authority {
	t.Helper()
	a, err := Open(dir, clock)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func identity(t *testing.T, a *Authority, name string, request Request) Identity {
	t.Helper()
	i, err := a.Identity(name, request)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func TestCertificatesSayWhatWasAsked(t *testing.T) {
	clock := testingclock.NewFakePassiveClock(start)
	a := open(t, t.TempDir(), clock)
	for _, test := range []struct {
		name    string
		request Request
		usages  []x509.ExtKeyUsage
	}{
		{"client", Request{User: "u", Groups: []string{"g", "h"}}, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}},
		{"server", Request{User: "s", Names: []string{"localhost"}, Addresses: []net.IP{net.IPv4(127, 0, 0, 1)}}, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}},
	} {
		pair, err := identity(t, a, test.name, test.request).TLS()
		if err != nil {
			t.Fatal(err)
		}
		for _, usage := range test.usages {
			_, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: a.Pool(), CurrentTime: start, KeyUsages: []x509.ExtKeyUsage{usage}})
			if err != nil {
				t.Errorf("%s for usage %d: %v", test.name, usage, err)
			}
		}
		if len(pair.Leaf.ExtKeyUsage) != len(test.usages) {
			t.Errorf("%s: usages %v, want %v", test.name, pair.Leaf.ExtKeyUsage, test.usages)
		}
		if pair.Leaf.Subject.CommonName != test.request.User || !sameSet(pair.Leaf.Subject.Organization, test.request.Groups) {
			t.Errorf("%s: subject %v", test.name, pair.Leaf.Subject)
		}
	}
}

func TestIdentityIsKeptUntilItMustChange(t *testing.T) {
	dir := t.TempDir()
	clock := testingclock.NewFakePassiveClock(start)
	request := Request{User: "u", Groups: []string{"g"}}
	first := identity(t, open(t, dir, clock), "u", request)
	for _, test := range []struct {
		name    string
		after   time.Duration
		request Request
		renewed bool
	}{
		{"the next start", time.Hour, request, false},
		{"groups in another order", time.Hour, Request{User: "u", Groups: []string{"g"}}, false},
		{"thirty-one days before the end", certificateLifetime - 31*24*time.Hour, request, false},
		{"twenty-nine days before the end", certificateLifetime - 29*24*time.Hour, request, true},
		{"another user", time.Hour, Request{User: "v", Groups: []string{"g"}}, true},
		{"another group", time.Hour, Request{User: "u", Groups: []string{"h"}}, true},
		{"another name", time.Hour, Request{User: "u", Groups: []string{"g"}, Names: []string{"n"}}, true},
	} {
		copied := t.TempDir()
		if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		later := testingclock.NewFakePassiveClock(start.Add(test.after))
		got := identity(t, open(t, copied, later), "u", test.request)
		if renewed := !bytes.Equal(got.CertPEM, first.CertPEM); renewed != test.renewed {
			t.Errorf("%s: renewed %v, want %v", test.name, renewed, test.renewed)
		}
	}
}

func TestAnotherAuthorityRenewsAll(t *testing.T) {
	dir := t.TempDir()
	clock := testingclock.NewFakePassiveClock(start)
	first := identity(t, open(t, dir, clock), "u", Request{User: "u"})
	for _, name := range []string{"ca.crt", "ca.key"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if second := identity(t, open(t, dir, clock), "u", Request{User: "u"}); bytes.Equal(first.CertPEM, second.CertPEM) {
		t.Error("a certificate of an authority that is gone was kept")
	}
}

func TestFilesArePrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	a := open(t, dir, testingclock.NewFakePassiveClock(start))
	identity(t, a, "u", Request{User: "u"})
	if _, err := a.SigningKey("sa"); err != nil {
		t.Fatal(err)
	}
	if info, _ := os.Stat(dir); info.Mode().Perm() != 0o700 {
		t.Errorf("directory has mode %v", info.Mode())
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 6 {
		t.Errorf("files %v, %v; want ca, u, sa and the lock", entries, err)
	}
	for _, entry := range entries {
		if info, _ := entry.Info(); info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", entry.Name(), info.Mode())
		}
	}
}

func TestSigningKeyStays(t *testing.T) {
	a := open(t, t.TempDir(), testingclock.NewFakePassiveClock(start))
	first, err := a.SigningKey("sa")
	if err != nil {
		t.Fatal(err)
	}
	second, err := a.SigningKey("sa")
	if err != nil || !first.Equal(second) {
		t.Errorf("the key changed, or %v", err)
	}
	if err := os.WriteFile(filepath.Join(a.dir, "sa.key"), []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := a.SigningKey("sa"); err == nil {
		t.Error("a damaged key was replaced in silence: all tokens would end")
	}
}

// A certificate for somebody else's key is what the template says, but does not outlive the authority.
func TestSign(t *testing.T) {
	a := open(t, t.TempDir(), testingclock.NewFakePassiveClock(start))
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{Subject: pkix.Name{CommonName: "u"}, NotBefore: start, NotAfter: start.Add(2 * authorityLifetime)}
	text, err := a.Sign(template, key.Public())
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if err := cert.CheckSignatureFrom(a.cert); err != nil || cert.Subject.CommonName != "u" || !cert.NotAfter.Equal(a.cert.NotAfter) || cert.SerialNumber.Sign() == 0 {
		t.Errorf("signed is %v, until %s, number %s (%v)", cert.Subject, cert.NotAfter, cert.SerialNumber, err)
	}
	if template.SerialNumber != nil || template.NotAfter.Equal(a.cert.NotAfter) {
		t.Error("the template was changed")
	}
}
