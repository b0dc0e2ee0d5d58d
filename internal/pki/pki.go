// Package pki keeps the keys and certificates of one cluster: one certificate authority that signs the serving certificate of the API
// server, those of the nodes, and the client certificates of people and of parts that run elsewhere; and the key that signs
// service-account tokens.
//
// Everything is ECDSA P-256 (a handshake costs a fifth of RSA's) and lives in one directory of mode 0700, with files of mode 0600 that are
// written whole or not at all. Certificates that would end within thirty days are renewed when they are asked for, that is, at each start.
package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/bayplan/bayplan/internal/atomicfile"
	"github.com/bayplan/bayplan/internal/filelock"
	"k8s.io/utils/clock"
)

const (
	authorityLifetime   = 10 * 365 * 24 * time.Hour
	certificateLifetime = 365 * 24 * time.Hour
	renewBefore         = 30 * 24 * time.Hour
	// backdate lets a peer whose clock is a little behind accept a certificate made a moment ago.
	backdate = 5 * time.Minute
)

// Authority is a cluster's certificate authority together with the directory that holds all that it signed.
type Authority struct {
	dir   string
	clock clock.PassiveClock
	cert  *x509.Certificate
	key   *ecdsa.PrivateKey
}

// Identity is a key with its certificate, both in PEM.
type Identity struct {
	CertPEM, KeyPEM []byte
}

// TLS returns the identity in the form that crypto/tls wants.
func (i Identity) TLS() (tls.Certificate, error) { return tls.X509KeyPair(i.CertPEM, i.KeyPEM) }

// Request says what a certificate is for. Subject alone makes a client certificate (user name and groups); Names or Addresses make it
// a serving certificate too.
type Request struct {
	User      string
	Groups    []string
	Names     []string
	Addresses []net.IP
}

// Open loads the authority from dir, or makes one there.
func Open(dir string, clock clock.PassiveClock) (*Authority, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the directory for keys: %w", err)
	}
	a := &Authority{dir: dir, clock: clock}
	_, err := ensure(a, func() (Identity, error) { return a.own(a.load("ca")) }, func() (Identity, error) { return a.own(a.createAuthority()) })
	if err != nil {
		return nil, err
	}
	return a, nil
}

// own takes the identity that was loaded or made as that of the authority itself.
func (a *Authority) own(identity Identity, err error) (Identity, error) {
	if err != nil {
		return Identity{}, err
	}
	if a.cert, a.key, err = parse(identity); err != nil {
		return Identity{}, fmt.Errorf("%s: %w", filepath.Join(a.dir, "ca.crt"), err)
	}
	return identity, nil
}

// ensure returns what find finds, or what create makes where there is nothing. Servers that share a directory make a thing once: the first of them holds the
// directory's lock meanwhile, and the others look again. A directory in which all is there may be read-only.
func ensure[T any](a *Authority, find, create func() (T, error)) (T, error) {
	if found, err := find(); err == nil {
		return found, nil
	}
	lock, err := filelock.Lock(filepath.Join(a.dir, ".lock"))
	if err != nil {
		var none T
		return none, fmt.Errorf("the directory for keys: %w", err)
	}
	defer lock.Close()
	found, err := find()
	if errors.Is(err, fs.ErrNotExist) {
		return create()
	}
	return found, err
}

// CertPEM returns the authority's own certificate, which is what clients trust.
func (a *Authority) CertPEM() []byte { return encodeCertificate(a.cert.Raw) }

// Pool returns a pool that trusts this authority alone.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// Identity returns the identity that is kept under name, and signs a new one when there is none, when it is about to end, when it was signed by
// another authority or when it says something else than the request.
func (a *Authority) Identity(name string, request Request) (Identity, error) {
	return ensure(a, func() (Identity, error) {
		identity, err := a.load(name)
		if err == nil && !a.current(identity, request) {
			err = fs.ErrNotExist
		}
		return identity, err
	}, func() (Identity, error) { return a.sign(name, request) })
}

func (a *Authority) sign(name string, request Request) (Identity, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Identity{}, err
	}
	der, err := a.certify(request.template(a.clock.Now()), key.Public())
	if err != nil {
		return Identity{}, fmt.Errorf("signing the certificate of %q: %w", name, err)
	}
	return a.save(name, der, key)
}

// Sign makes a certificate for somebody else's key from the template, which says everything but the serial number, and returns it in PEM. It ends no
// later than the authority's own certificate, and is kept nowhere.
func (a *Authority) Sign(template *x509.Certificate, key crypto.PublicKey) ([]byte, error) {
	der, err := a.certify(template, key)
	if err != nil {
		return nil, fmt.Errorf("signing a certificate for %q: %w", template.Subject.CommonName, err)
	}
	return encodeCertificate(der), nil
}

func (a *Authority) certify(template *x509.Certificate, key crypto.PublicKey) ([]byte, error) {
	number, err := serial()
	if err != nil {
		return nil, err
	}
	signed := *template
	signed.SerialNumber = number
	if signed.NotAfter.After(a.cert.NotAfter) {
		signed.NotAfter = a.cert.NotAfter
	}
	return x509.CreateCertificate(rand.Reader, &signed, a.cert, key, a.key)
}

// SigningKey returns the private key under name that signs tokens, and makes it when there is none.
func (a *Authority) SigningKey(name string) (*ecdsa.PrivateKey, error) {
	path := filepath.Join(a.dir, name+".key")
	return ensure(a, func() (*ecdsa.PrivateKey, error) {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		key, err := parseKey(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		return key, nil
	}, func() (*ecdsa.PrivateKey, error) { return createSigningKey(path) })
}

func createSigningKey(path string) (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	data, err := encodeKey(key)
	if err != nil {
		return nil, err
	}
	return key, atomicfile.Write(path, data, 0o600)
}

func (r Request) template(now time.Time) *x509.Certificate {
	t := &x509.Certificate{
		Subject:               pkix.Name{CommonName: r.User, Organization: r.Groups},
		DNSNames:              r.Names,
		IPAddresses:           r.Addresses,
		NotBefore:             now.Add(-backdate),
		NotAfter:              now.Add(certificateLifetime),
		KeyUsage:              x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	if r.serves() {
		t.ExtKeyUsage = append(t.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	return t
}

func (r Request) serves() bool { return len(r.Names)+len(r.Addresses) > 0 }

func (a *Authority) current(identity Identity, request Request) bool {
	cert, _, err := parse(identity)
	if err != nil || cert.CheckSignatureFrom(a.cert) != nil {
		return false
	}
	// The authority itself may end sooner than thirty days from now; a certificate cannot outlive it.
	if deadline := a.clock.Now().Add(renewBefore); cert.NotAfter.Before(deadline) && cert.NotAfter.Before(a.cert.NotAfter) {
		return false
	}
	return cert.Subject.CommonName == request.User &&
		sameSet(cert.Subject.Organization, request.Groups) &&
		sameSet(cert.DNSNames, request.Names) &&
		sameSet(addressStrings(cert.IPAddresses), addressStrings(request.Addresses))
}

func (a *Authority) createAuthority() (Identity, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Identity{}, err
	}
	number, err := serial()
	if err != nil {
		return Identity{}, err
	}
	now := a.clock.Now()
	template := &x509.Certificate{
		SerialNumber:          number,
		Subject:               pkix.Name{CommonName: "bayplan-ca"},
		NotBefore:             now.Add(-backdate),
		NotAfter:              now.Add(authorityLifetime),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign | x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return Identity{}, fmt.Errorf("making the certificate authority: %w", err)
	}
	return a.save("ca", der, key)
}

// load reads name.key before name.crt and save writes them in the same order: a certificate without its key never counts.
func (a *Authority) load(name string) (Identity, error) {
	key, err := os.ReadFile(filepath.Join(a.dir, name+".key"))
	if err != nil {
		return Identity{}, err
	}
	cert, err := os.ReadFile(filepath.Join(a.dir, name+".crt"))
	return Identity{CertPEM: cert, KeyPEM: key}, err
}

func (a *Authority) save(name string, der []byte, key *ecdsa.PrivateKey) (Identity, error) {
	keyPEM, err := encodeKey(key)
	if err != nil {
		return Identity{}, err
	}
	identity := Identity{CertPEM: encodeCertificate(der), KeyPEM: keyPEM}
	if err := atomicfile.Write(filepath.Join(a.dir, name+".key"), identity.KeyPEM, 0o600); err != nil {
		return Identity{}, err
	}
	return identity, atomicfile.Write(filepath.Join(a.dir, name+".crt"), identity.CertPEM, 0o600)
}

func parse(identity Identity) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	pair, err := identity.TLS()
	if err != nil {
		return nil, nil, err
	}
	key, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
	if !ok {
		return nil, nil, fmt.Errorf("the key is a %T, want ECDSA", pair.PrivateKey)
	}
	return pair.Leaf, key, nil
}

func parseKey(data []byte) (*ecdsa.PrivateKey, error) {
	block, _ := pem.Decode(data)
	if block == nil || block.Type != "EC PRIVATE KEY" {
		return nil, errors.New("holds no EC PRIVATE KEY in PEM")
	}
	return x509.ParseECPrivateKey(block.Bytes)
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}

func encodeCertificate(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func serial() (*big.Int, error) {
	return rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
}

func sameSet(a, b []string) bool {
	a, b = slices.Clone(a), slices.Clone(b)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}

func addressStrings(addresses []net.IP) []string {
	var out []string
	for _, address := range addresses {
		out = append(out, address.String())
	}
	return out
}
