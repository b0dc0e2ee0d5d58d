package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"k8s.io/client-go/rest"
)

// peer is kube-apiserver with etcd, as they are set up by default. No controller runs, so that pods come without a ServiceAccount.
type peer struct{ folder string }

func (peer) name() string { return "kube-apiserver and etcd" }

func (r peer) start(_ context.Context, dir string) (*plane, error) {
	secret, key, err := credentials(dir)
	if err != nil {
		return nil, err
	}
	var ports [3]int
	for i := range ports {
		if ports[i], err = freePort(); err != nil {
			return nil, err
		}
	}
	etcd := fmt.Sprintf("http://127.0.0.1:%d", ports[0])
	p := &plane{}
	err = p.launch(dir, filepath.Join(r.folder, "etcd"), "--data-dir", filepath.Join(dir, "etcd"),
		"--listen-client-urls", etcd, "--advertise-client-urls", etcd,
		"--listen-peer-urls", fmt.Sprintf("http://127.0.0.1:%d", ports[1]))
	if err != nil {
		return nil, err
	}
	certificates := filepath.Join(dir, "certificates")
	p.config = func() (*rest.Config, error) {
		authority, err := os.ReadFile(filepath.Join(certificates, "apiserver.crt"))
		return &rest.Config{
			Host: fmt.Sprintf("https://127.0.0.1:%d", ports[2]), BearerToken: secret,
			TLSClientConfig: rest.TLSClientConfig{CAData: authority},
		}, err
	}
	return p, p.launch(dir, filepath.Join(r.folder, "kube-apiserver"), "--etcd-servers", etcd,
		"--bind-address", "127.0.0.1", "--advertise-address", "127.0.0.1", "--secure-port", strconv.Itoa(ports[2]), "--cert-dir", certificates,
		"--service-cluster-ip-range", "10.96.0.0/16", "--token-auth-file", filepath.Join(dir, "tokens.csv"), "--authorization-mode", "Node,RBAC",
		"--service-account-issuer", "https://kubernetes.default.svc", "--service-account-key-file", key, "--service-account-signing-key-file", key,
		"--disable-admission-plugins", "ServiceAccount")
}

// credentials makes the administrator's token and the key that signs tokens, where an earlier start did not.
func credentials(dir string) (secret, keyFile string, err error) {
	keyFile, tokenFile := filepath.Join(dir, "sa.key"), filepath.Join(dir, "token")
	kept, err := os.ReadFile(tokenFile)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return string(kept), keyFile, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", "", err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return "", "", err
	}
	random := make([]byte, 16)
	if _, err := rand.Read(random); err != nil {
		return "", "", err
	}
	secret = hex.EncodeToString(random)
	for path, data := range map[string][]byte{
		keyFile: pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), tokenFile: []byte(secret),
		filepath.Join(dir, "tokens.csv"): []byte(secret + ",admin,admin,system:masters\n"),
	} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			return "", "", err
		}
	}
	return secret, keyFile, nil
}
