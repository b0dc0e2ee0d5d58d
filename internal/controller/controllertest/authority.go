package controllertest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"sync/atomic"
	"time"
)

// Authority is a certificate authority that begins when it is made and lasts for ten years.
type Authority struct {
	Cert   *x509.Certificate
	key    *ecdsa.PrivateKey
	serial atomic.Int64
}

// NewAuthority makes an authority.
func NewAuthority() *Authority {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(10, 0, 0),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		panic(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		panic(err)
	}
	return &Authority{Cert: cert, key: key}
}

// Sign makes a certificate.
func (a *Authority) Sign(template *x509.Certificate, key crypto.PublicKey) ([]byte, error) {
	signed := *template
	signed.SerialNumber = big.NewInt(1 + a.serial.Add(1))
	if signed.NotAfter.After(a.Cert.NotAfter) {
		signed.NotAfter = a.Cert.NotAfter
	}
	der, err := x509.CreateCertificate(rand.Reader, &signed, a.Cert, key, a.key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}
