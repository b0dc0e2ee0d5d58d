package tokens

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	clocktesting "k8s.io/utils/clock/testing"
)

// world is what there is.
type world struct {
	account *corev1.ServiceAccount
	pod     *corev1.Pod
}

func (w *world) ServiceAccount(context.Context, string, string) (*corev1.ServiceAccount, error) {
	return w.account, nil
}

func (w *world) Pod(_ context.Context, _, name string) (*corev1.Pod, error) {
	if w.pod == nil {
		return nil, apierrors.NewNotFound(corev1.Resource("pods"), name)
	}
	return w.pod, nil
}

func (w *world) Secret(_ context.Context, _, name string) (*corev1.Secret, error) {
	return nil, apierrors.NewNotFound(corev1.Resource("secrets"), name)
}

func (w *world) Node(_ context.Context, name string) (*corev1.Node, error) {
	return nil, apierrors.NewNotFound(corev1.Resource("nodes"), name)
}

func newTokens(t testing.TB) (*Tokens, *world, *clocktesting.FakePassiveClock) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	clock := clocktesting.NewFakePassiveClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	tokens, err := New(key, clock)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{
		account: &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "robot", UID: "u1"}},
		pod:     &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "u2"}},
	}
	tokens.SetObjects(w)
	return tokens, w, clock
}

// TestLife walks a token through what can end it. Each case has a world of its own.
func TestLife(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(w *world, clock *clocktesting.FakePassiveClock)
		problem string
	}{
		"fresh":              {func(*world, *clocktesting.FakePassiveClock) {}, ""},
		"almost over":        {func(_ *world, c *clocktesting.FakePassiveClock) { c.SetTime(c.Now().Add(time.Hour - time.Second)) }, ""},
		"over":               {func(_ *world, c *clocktesting.FakePassiveClock) { c.SetTime(c.Now().Add(time.Hour + time.Second)) }, "expired"},
		"not yet":            {func(_ *world, c *clocktesting.FakePassiveClock) { c.SetTime(c.Now().Add(-time.Minute)) }, "not valid yet"},
		"the pod is gone":    {func(w *world, _ *clocktesting.FakePassiveClock) { w.pod = nil }, "invalidated"},
		"the pod is another": {func(w *world, _ *clocktesting.FakePassiveClock) { w.pod.UID = "u3" }, "another one"},
		"the pod is going": {func(w *world, c *clocktesting.FakePassiveClock) {
			w.pod.DeletionTimestamp = &metav1.Time{Time: c.Now().Add(-time.Second)}
		}, ""},
		"the pod has gone": {func(w *world, c *clocktesting.FakePassiveClock) {
			w.pod.DeletionTimestamp = &metav1.Time{Time: c.Now().Add(-2 * time.Minute)}
		}, "has been deleted"},
		"the account changed": {func(w *world, _ *clocktesting.FakePassiveClock) { w.account.UID = "u9" }, "another one"},
	} {
		t.Run(name, func(t *testing.T) {
			tokens, w, clock := newTokens(t)
			token, _, err := tokens.Issue(w.account, Binding{Pod: w.pod}, tokens.Audiences(), time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			c.change(w, clock)
			response, ok, err := tokens.AuthenticateToken(t.Context(), token)
			if c.problem == "" && (!ok || err != nil || response.User.GetName() != "system:serviceaccount:ns:robot") {
				t.Errorf("got %v, %v, %v", response, ok, err)
			}
			if c.problem != "" && (ok || err == nil || !strings.Contains(err.Error(), c.problem)) {
				t.Errorf("got %v, %v, want %q", ok, err, c.problem)
			}
		})
	}
}

func TestForgeries(t *testing.T) {
	tokens, w, _ := newTokens(t)
	others, _, _ := newTokens(t)
	forged, _, err := others.Issue(w.account, Binding{}, tokens.Audiences(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok, err := tokens.AuthenticateToken(t.Context(), forged); ok || err == nil {
		t.Errorf("another cluster's signature: %v, %v", ok, err)
	}
	// A token that says that it has no signature.
	parts := strings.Split(forged, ".")
	none := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none","typ":"JWT"}`)) + "." + parts[1] + "."
	if _, ok, err := tokens.AuthenticateToken(t.Context(), none); ok || err == nil {
		t.Errorf("no signature: %v, %v", ok, err)
	}
	if _, ok, err := tokens.AuthenticateToken(t.Context(), "not-a-token"); ok || err != nil {
		t.Errorf("what is no such token is another's business: %v, %v", ok, err)
	}
	good, _, err := tokens.Issue(w.account, Binding{}, []string{"vault"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok, err := tokens.AuthenticateToken(t.Context(), good); ok || err == nil {
		t.Errorf("another audience: %v, %v", ok, err)
	}
	vault := authenticator.WithAudiences(t.Context(), authenticator.Audiences{"vault", "other"})
	if r, ok, err := tokens.AuthenticateToken(vault, good); !ok || err != nil || len(r.Audiences) != 1 {
		t.Errorf("its audience: %v, %v", ok, err)
	}
}

// FuzzAuthenticate: nothing that was not issued is taken.
func FuzzAuthenticate(f *testing.F) {
	tokens, w, _ := newTokens(f)
	token, _, err := tokens.Issue(w.account, Binding{Pod: w.pod}, tokens.Audiences(), time.Hour)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(token[:len(token)-1])
	f.Add("..")
	f.Add("a.b.c")
	f.Fuzz(func(t *testing.T, text string) {
		if _, ok, _ := tokens.AuthenticateToken(t.Context(), text); ok && text != token {
			t.Errorf("%q was taken", text)
		}
	})
}

func BenchmarkAuthenticate(b *testing.B) {
	b.ReportAllocs()
	tokens, w, _ := newTokens(b)
	token, _, err := tokens.Issue(w.account, Binding{Pod: w.pod}, tokens.Audiences(), time.Hour)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, ok, err := tokens.AuthenticateToken(b.Context(), token); !ok {
			b.Fatal(err)
		}
	}
}
