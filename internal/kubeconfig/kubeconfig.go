// Package kubeconfig writes the entry of a cluster into a kubeconfig file, beside whatever else is there, and takes it out again.
package kubeconfig

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/bayplan/bayplan/internal/atomicfile"
)

// File is a kubeconfig file and, when the program runs through sudo, the user to whom it belongs.
type File struct {
	Path     string
	uid, gid int
}

// ForUser returns the file that the calling user's kubectl reads: the first of $KUBECONFIG, or ~/.kube/config. Through sudo it is the file of the user who called.
func ForUser() (File, error) {
	f := File{uid: -1, gid: -1}
	if list := filepath.SplitList(os.Getenv("KUBECONFIG")); len(list) > 0 && list[0] != "" {
		f.Path = list[0]
		return f, nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return f, fmt.Errorf("no home directory for a kubeconfig; name a file by --kubeconfig: %w", err)
	}
	if name := os.Getenv("SUDO_USER"); name != "" && os.Geteuid() == 0 {
		caller, err := user.Lookup(name)
		if err != nil {
			return f, fmt.Errorf("looking up $SUDO_USER: %w", err)
		}
		home = caller.HomeDir
		f.uid, _ = strconv.Atoi(caller.Uid)
		f.gid, _ = strconv.Atoi(caller.Gid)
	}
	f.Path = filepath.Join(home, ".kube", "config")
	return f, nil
}

// At returns the file at path.
func At(path string) File { return File{Path: path, uid: -1, gid: -1} }

// Add puts cluster, user and context of that name into the file and makes it the current context.
func (f File) Add(name string, config *rest.Config) error {
	return f.edit(func(c *api.Config) {
		c.Clusters[name] = &api.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
		c.AuthInfos[name] = &api.AuthInfo{ClientCertificateData: config.CertData, ClientKeyData: config.KeyData}
		c.Contexts[name] = &api.Context{Cluster: name, AuthInfo: name}
		c.CurrentContext = name
	})
}

// Check tells beforehand whether Add will work. It leaves nothing behind.
func (f File) Check() error {
	if _, err := clientcmd.LoadFromFile(f.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("reading kubeconfig %s: %w; name another file by --kubeconfig", f.Path, err)
	}
	path := f.Path
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	dir := filepath.Dir(path)
	for {
		if _, err := os.Stat(dir); err == nil || filepath.Dir(dir) == dir {
			break
		}
		dir = filepath.Dir(dir)
	}
	probe, err := os.CreateTemp(dir, ".bayplan-*")
	if err != nil {
		return fmt.Errorf("kubeconfig %s cannot be written: %w; name another file by --kubeconfig", f.Path, err)
	}
	return errors.Join(probe.Close(), os.Remove(probe.Name()))
}

// RemoveCluster takes the entries of that name out of the file, if they are of the cluster with this authority and not of another one that took the name since.
func (f File) RemoveCluster(name string, authority []byte) error {
	config, err := clientcmd.LoadFromFile(f.Path)
	if err != nil {
		return nil // there is nothing that could be taken out
	}
	if c := config.Clusters[name]; c == nil || !bytes.Equal(c.CertificateAuthorityData, authority) {
		return nil
	}
	return f.Remove(name)
}

// Remove takes the entries of that name out of the file.
func (f File) Remove(name string) error {
	if _, err := os.Stat(f.Path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return f.edit(func(c *api.Config) {
		delete(c.Clusters, name)
		delete(c.AuthInfos, name)
		delete(c.Contexts, name)
		if c.CurrentContext == name {
			c.CurrentContext = ""
		}
	})
}

func (f File) edit(change func(*api.Config)) error {
	config, err := clientcmd.LoadFromFile(f.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		config = api.NewConfig()
	case err != nil:
		return fmt.Errorf("reading kubeconfig %s: %w", f.Path, err)
	}
	change(config)
	data, err := clientcmd.Write(*config)
	if err != nil {
		return err
	}
	// A kubeconfig is often a link into a directory under version control: the link stays, the file changes.
	path := f.Path
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	if err := f.makeDir(filepath.Dir(path)); err != nil {
		return err
	}
	if err := atomicfile.Write(path, data, 0o600); err != nil {
		return err
	}
	return f.own(path)
}

func (f File) makeDir(dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return f.own(dir)
}

func (f File) own(path string) error {
	if f.uid < 0 {
		return nil
	}
	return os.Chown(path, f.uid, f.gid)
}
