package image

import (
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"github.com/bayplan/bayplan/internal/node/fakecri"
)

func login(user string) string {
	return `{"auth":"` + base64.StdEncoding.EncodeToString([]byte(user+":pw")) + `"}`
}

func configJSON(auths string) *v1.Secret {
	return &v1.Secret{Type: v1.SecretTypeDockerConfigJson, Data: map[string][]byte{v1.DockerConfigJsonKey: []byte(`{"auths":{` + auths + `}}`)}}
}

func TestCredentials(t *testing.T) {
	secrets := []*v1.Secret{
		configJSON(`"https://index.docker.io/v1/":` + login("hub") + `,"registry.example:5000":` + login("all") + `,"registry.example:5000/team":` + login("team") + `,"*.wild.example":` + login("wild")),
		{Type: v1.SecretTypeDockercfg, Data: map[string][]byte{v1.DockerConfigKey: []byte(`{"old.example":{"username":"old","password":"x"}}`)}},
		{Type: v1.SecretTypeDockerConfigJson, Data: map[string][]byte{v1.DockerConfigJsonKey: []byte(`no json`)}},
	}
	for image, want := range map[string]string{
		"nginx":                                           "hub",
		"docker.io/library/nginx:1":                       "hub",
		"registry.example:5000/team/app:1":                "team,all",
		"registry.example:5000/teamwork":                  "all",
		"a.wild.example/x":                                "wild",
		"a.b.wild.example/x":                              "",
		"old.example/x@sha256:" + strings.Repeat("0", 64): "old",
		"other.example/x":                                 "",
	} {
		var got []string
		for _, a := range Credentials(secrets, image) {
			got = append(got, a.Username)
		}
		if s := strings.Join(got, ","); s != want {
			t.Errorf("%s: %q, want %q", image, s, want)
		}
	}
}

func FuzzCredentials(f *testing.F) {
	f.Add(`{"auths":{"a":{"auth":"eDp5"}}}`, "a/b:c")
	f.Fuzz(func(t *testing.T, config, image string) {
		s := &v1.Secret{Type: v1.SecretTypeDockerConfigJson, Data: map[string][]byte{v1.DockerConfigJsonKey: []byte(config)}}
		Credentials([]*v1.Secret{s}, image)
	})
}

// ensure pulls and returns the events' reasons.
func ensure(t *testing.T, p *Puller, c *v1.Container) ([]string, *Failure) {
	t.Helper()
	var events []string
	_, failed := p.Ensure(t.Context(), c, nil, func(_, reason, _ string) { events = append(events, reason) })
	return events, failed
}

func TestPolicies(t *testing.T) {
	cri := fakecri.New(clock.RealClock{})
	cri.AddImage("there:1")
	cri.AddImage("there:latest")
	pulled := 0
	p := NewPuller(cri, clock.RealClock{}, 1, func() { pulled++ })
	for _, c := range []struct {
		image  string
		policy v1.PullPolicy
		reason string
		events []string
	}{
		{"there:1", "", "", []string{"Pulled"}},
		{"there:1", v1.PullAlways, "", []string{"Pulling", "Pulled"}},
		{"there:latest", "", "", []string{"Pulling", "Pulled"}},
		{"new:1", v1.PullIfNotPresent, "", []string{"Pulling", "Pulled"}},
		{"new:2", v1.PullNever, ReasonNever, []string{ReasonNever}},
		{"Not A Name", "", ReasonInvalid, []string{"InspectFailed"}},
	} {
		events, failed := ensure(t, p, &v1.Container{Image: c.image, ImagePullPolicy: c.policy})
		reason := ""
		if failed != nil {
			reason = failed.Reason
		}
		if reason != c.reason || !slices.Equal(events, c.events) {
			t.Errorf("%s %s: %q %q, want %q %q", c.image, c.policy, reason, events, c.reason, c.events)
		}
	}
	if pulled != 3 {
		t.Errorf("%d pulls, want 3", pulled)
	}
	cri.Fail("PullImage/bad:1", errors.New("no such image"))
	events, failed := ensure(t, p, &v1.Container{Image: "bad:1"})
	if failed == nil || failed.Reason != ReasonPull || failed.Message != "no such image" || !slices.Equal(events, []string{"Pulling", "Failed", "Failed"}) {
		t.Errorf("failed pull: %v, %q", failed, events)
	}
}

func TestOnePullForMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cri := fakecri.New(clock.RealClock{})
		cri.Delay("PullImage", time.Second)
		p := NewPuller(cri, clock.RealClock{}, 4, func() {})
		done := make(chan *Failure)
		for range 10 {
			go func() {
				_, failed := p.Ensure(t.Context(), &v1.Container{Image: "big:1"}, nil, func(string, string, string) {})
				done <- failed
			}()
		}
		for range 10 {
			if failed := <-done; failed != nil {
				t.Error(failed)
			}
		}
		if j := cri.Journal(); !slices.Equal(j, []string{"pull big:1"}) {
			t.Errorf("the runtime was told %q", j)
		}
	})
}

func TestCollect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cri := fakecri.New(clock.RealClock{})
		for _, name := range []string{"used:1", "old:1", "other:1"} {
			cri.AddImage(name)
		}
		free := int64(5000)
		c := &Collector{Images: cri, Clock: clock.RealClock{}, High: 85, Low: 80, Usage: func(string) (int64, int64, error) { return 10000, free, nil }}
		collect := func(want ...string) {
			t.Helper()
			got, err := c.Collect(t.Context(), map[string]bool{"used:1": true})
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("removed %q, %v; want %q", got, err, want)
			}
		}
		free = 1500
		collect() // all are too young
		time.Sleep(3 * time.Minute)
		cri.AddImage("young:1")
		free = 5000
		collect() // there is room
		free = 1500
		collect("old:1") // 1000 bytes take usage from 85 to 75 percent
		free = 0
		collect("other:1")
		collect()
		time.Sleep(3 * time.Minute)
		collect("young:1")
	})
}
