package image

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"path"
	"slices"
	"strings"

	"github.com/distribution/reference"
	v1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// entry is one registry's login in a Docker configuration file.
type entry struct {
	Username      string `json:"username"`
	Password      string `json:"password"`
	Auth          string `json:"auth"`
	IdentityToken string `json:"identitytoken"`
	RegistryToken string `json:"registrytoken"`
}

// Credentials are the logins in the secrets that fit the image, the most specific first. Secrets that can't be read are passed over:
// a pull without them tells more than a pod that doesn't start.
func Credentials(secrets []*v1.Secret, image string) []*cri.AuthConfig {
	named, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return nil
	}
	type match struct {
		pattern string
		auth    *cri.AuthConfig
	}
	var found []match
	for _, s := range secrets {
		for key, e := range parseSecret(s) {
			if pattern := pattern(key); fits(pattern, reference.Domain(named), named.Name()) {
				found = append(found, match{pattern, e.auth()})
			}
		}
	}
	slices.SortStableFunc(found, func(a, b match) int {
		return cmp.Or(cmp.Compare(len(b.pattern), len(a.pattern)), cmp.Compare(a.pattern, b.pattern), cmp.Compare(a.auth.Username, b.auth.Username))
	})
	out := make([]*cri.AuthConfig, len(found))
	for i, m := range found {
		out[i] = m.auth
	}
	return out
}

func parseSecret(s *v1.Secret) map[string]entry {
	switch s.Type {
	case v1.SecretTypeDockerConfigJson:
		var file struct {
			Auths map[string]entry `json:"auths"`
		}
		if json.Unmarshal(s.Data[v1.DockerConfigJsonKey], &file) == nil {
			return file.Auths
		}
	case v1.SecretTypeDockercfg:
		var auths map[string]entry
		if json.Unmarshal(s.Data[v1.DockerConfigKey], &auths) == nil {
			return auths
		}
	}
	return nil
}

func (e entry) auth() *cri.AuthConfig {
	a := &cri.AuthConfig{Username: e.Username, Password: e.Password, IdentityToken: e.IdentityToken, RegistryToken: e.RegistryToken}
	if a.Username == "" && e.Auth != "" {
		if data, err := base64.StdEncoding.DecodeString(e.Auth); err == nil {
			a.Username, a.Password, _ = strings.Cut(string(data), ":")
		}
	}
	return a
}

// pattern is a key of the file without scheme and API version: https://index.docker.io/v1/ is docker.io.
func pattern(key string) string {
	key = strings.TrimPrefix(strings.TrimPrefix(key, "https://"), "http://")
	key = strings.TrimSuffix(key, "/")
	for _, version := range []string{"/v1", "/v2"} {
		key = strings.TrimSuffix(key, version)
	}
	if key == "index.docker.io" || key == "registry-1.docker.io" {
		return "docker.io"
	}
	return key
}

// fits tells whether a pattern (a host, whose labels may be globs, with or without a path) covers the image's repository.
func fits(pattern, domain, name string) bool {
	host, prefix, hasPath := strings.Cut(pattern, "/")
	want, have := strings.Split(host, "."), strings.Split(domain, ".")
	if len(want) != len(have) {
		return false
	}
	for i := range want {
		if ok, err := path.Match(want[i], have[i]); err != nil || !ok {
			return false
		}
	}
	rest := strings.TrimPrefix(name, domain+"/")
	return !hasPath || rest == prefix || strings.HasPrefix(rest, prefix+"/")
}
