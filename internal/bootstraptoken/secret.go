package bootstraptoken

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// SecretType is the type of the Secrets that keep tokens.
const SecretType corev1.SecretType = "bootstrap.kubernetes.io/token"

// Keys of such a Secret.
const (
	IDKey             = "token-id"
	SecretKey         = "token-secret"
	ExpirationKey     = "expiration"
	DescriptionKey    = "description"
	ExtraGroupsKey    = "auth-extra-groups"
	AuthenticationKey = "usage-bootstrap-authentication"
	SigningKey        = "usage-bootstrap-signing"
)

var extraGroup = regexp.MustCompile(`\Asystem:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]\z`)

// Stored is a token as it is kept.
type Stored struct {
	Token
	// Groups are those of who shows the token.
	Groups               []string
	Authenticates, Signs bool
	// Expires is when the token ends; zero for never.
	Expires time.Time
}

// Read reads a Secret. The error says what is wrong with it, and is not for strangers.
func Read(secret *corev1.Secret) (Stored, error) {
	value := func(key string) string { return string(secret.Data[key]) }
	s := Stored{
		Token: Token{value(IDKey), value(SecretKey)}, Groups: []string{Group},
		Authenticates: value(AuthenticationKey) == "true", Signs: value(SigningKey) == "true",
	}
	switch {
	case secret.Type != SecretType:
		return s, fmt.Errorf("type is %q, want %q", secret.Type, SecretType)
	case secret.Name != s.SecretName():
		return s, fmt.Errorf("data[%q] does not fit the name of the Secret", IDKey)
	case !form.MatchString(s.String()):
		return s, fmt.Errorf("data[%q] and data[%q] are no token: want 6 and 16 small letters and digits", IDKey, SecretKey)
	}
	var err error
	if s.Expires, err = Expiry(secret); err != nil {
		return s, err
	}
	if extra := value(ExtraGroupsKey); extra != "" {
		for group := range strings.SplitSeq(extra, ",") {
			if !extraGroup.MatchString(group) {
				return s, fmt.Errorf("data[%q]: group %q must match %s", ExtraGroupsKey, group, extraGroup)
			}
			s.Groups = append(s.Groups, group)
		}
		slices.Sort(s.Groups)
		s.Groups = slices.Compact(s.Groups)
	}
	return s, nil
}

// Expiry is when the token of a Secret ends; zero for never. What is no time is an error, and ends the token at once.
func Expiry(secret *corev1.Secret) (time.Time, error) {
	text := string(secret.Data[ExpirationKey])
	if text == "" {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, fmt.Errorf("data[%q] is not a time: %w", ExpirationKey, err)
	}
	return at, nil
}

// Expired reports whether the token has ended.
func (s *Stored) Expired(now time.Time) bool { return !s.Expires.IsZero() && !s.Expires.After(now) }
