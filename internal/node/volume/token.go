package volume

import (
	"context"
	"fmt"
	"time"

	authentication "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

type tokenKey struct {
	uid      types.UID
	audience string
	seconds  int64
}

type token struct {
	text    string
	renewAt time.Time
}

const (
	defaultTokenSeconds = 3600
	// maxTokenAge is after which a token is renewed even if it would hold longer.
	maxTokenAge = 24 * time.Hour
)

// token is a token of the pod's service account, bound to the pod. It is asked for anew after 80 % of its time.
func (m *Manager) token(ctx context.Context, pod *v1.Pod, p *v1.ServiceAccountTokenProjection) (string, error) {
	seconds := int64(defaultTokenSeconds)
	if p.ExpirationSeconds != nil {
		seconds = *p.ExpirationSeconds
	}
	key := tokenKey{pod.UID, p.Audience, seconds}
	now := m.clock.Now()
	m.mu.Lock()
	known := m.tokens[key]
	m.mu.Unlock()
	if known != nil && now.Before(known.renewAt) {
		return known.text, nil
	}
	request := &authentication.TokenRequest{Spec: authentication.TokenRequestSpec{
		ExpirationSeconds: &seconds,
		BoundObjectRef:    &authentication.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID},
	}}
	if p.Audience != "" {
		request.Spec.Audiences = []string{p.Audience}
	}
	answer, err := m.client.CoreV1().ServiceAccounts(pod.Namespace).CreateToken(ctx, pod.Spec.ServiceAccountName, request, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("failed to fetch token: %w", err)
	}
	life := answer.Status.ExpirationTimestamp.Sub(now)
	fresh := &token{answer.Status.Token, now.Add(min(life*8/10, maxTokenAge))}
	m.mu.Lock()
	m.tokens[key] = fresh
	m.mu.Unlock()
	return fresh.text, nil
}

func (m *Manager) forgetTokens(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key := range m.tokens {
		if key.uid == uid {
			delete(m.tokens, key)
		}
	}
	for key := range m.certificates {
		if key.uid == uid {
			delete(m.certificates, key)
		}
	}
}

// tokenMode makes a token readable for its pod only: for the group when there is an fsGroup, and for all otherwise, since the user of a
// container is in general not known here.
func tokenMode(pod *v1.Pod, mode int32) int32 {
	if fsGroup(pod) != nil {
		return 0o640
	}
	return mode
}
