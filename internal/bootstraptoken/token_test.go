package bootstraptoken

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]Token{
		"abcdef.0123456789abcdef": {"abcdef", "0123456789abcdef"},
		"abcde.0123456789abcdef":  {}, "abcdef.0123456789abcde": {}, "ABCDEF.0123456789abcdef": {}, "abcdef.0123456789abcdef\n": {},
		"abcdef0123456789abcdef": {}, "": {}, ".": {}, " abcdef.0123456789abcdef": {}, "abcdef.0123456789abcdef.x": {},
	} {
		if got, ok := Parse(text); got != want || ok != (want.ID != "") {
			t.Errorf("%q: %v, %v; want %v", text, got, ok, want)
		}
	}
	if got := (Token{"abcdef", "s"}).SecretName(); got != "bootstrap-token-abcdef" {
		t.Error(got)
	}
}

// FuzzParse: what is taken for a token is written as it was read, and signs what it verifies.
func FuzzParse(f *testing.F) {
	f.Add("abcdef.0123456789abcdef", "content")
	f.Add("abcdef.", "")
	f.Fuzz(func(t *testing.T, text, content string) {
		token, ok := Parse(text)
		if !ok {
			return
		}
		if token.String() != text || len(token.ID) != 6 || len(token.Secret) != 16 || !token.Verify(content, token.Sign(content)) {
			t.Errorf("%q: %+v", text, token)
		}
	})
}

// TestSign has signatures that Kubernetes' own library makes.
func TestSign(t *testing.T) {
	const content, secret = "Hello from the other side. I must have called a thousand times.", "my voice is my passcode"
	const header = "eyJhbGciOiJIUzI1NiIsImtpZCI6Impvc2h1YSJ9"
	for _, c := range []struct{ content, secret, want string }{
		{content, secret, header + "..VShe2taLd-YTrmWuRkcL_8QTNDHYxQIEBsAYYiIj1_8"},
		{"", secret, header + "..7Ui1ALizW4jXphVUB7xUqC9vLYLL9RZeOFfVLoB7Tgk"},
		{content, "", header + "..UfkqvDGiIFxrMnFseDj9LYJOLNrvjW8aHhF71mvvAs8"},
	} {
		token := Token{"joshua", c.secret}
		if got := token.Sign(c.content); got != c.want || !token.Verify(c.content, c.want) {
			t.Errorf("%q with %q: %s, want %s", c.content, c.secret, got, c.want)
		}
		for _, other := range []Token{{"joshua", c.secret + "x"}, {"joshub", c.secret}} {
			if other.Verify(c.content, c.want) {
				t.Errorf("%v verifies the signature of %v", other, token)
			}
		}
		if token.Verify(c.content+"x", c.want) {
			t.Error("another content is verified")
		}
	}
}

func stored(change func(map[string]string)) *corev1.Secret {
	data := map[string]string{IDKey: "abcdef", SecretKey: "0123456789abcdef", AuthenticationKey: "true"}
	if change != nil {
		change(data)
	}
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "bootstrap-token-abcdef"}, Type: SecretType, Data: map[string][]byte{}}
	for key, value := range data {
		s.Data[key] = []byte(value)
	}
	return s
}

func TestRead(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s, err := Read(stored(func(d map[string]string) {
		d[ExpirationKey], d[ExtraGroupsKey], d[SigningKey] = "2026-01-01T00:00:01Z", "system:bootstrappers:z,system:bootstrappers:a,system:bootstrappers:a", "true"
	}))
	if err != nil || strings.Join(s.Groups, " ") != "system:bootstrappers system:bootstrappers:a system:bootstrappers:z" || !s.Signs || !s.Authenticates {
		t.Errorf("%+v, %v", s, err)
	}
	if s.Expired(now) || !s.Expired(now.Add(time.Second)) {
		t.Errorf("expiry %v", s.Expires)
	}
	if s, err := Read(stored(nil)); err != nil || s.Expired(now.AddDate(100, 0, 0)) || s.Signs {
		t.Errorf("without an end: %+v, %v", s, err)
	}
	for want, change := range map[string]func(map[string]string){
		"does not fit the name":                            func(d map[string]string) { d[IDKey] = "zzzzzz" },
		"are no token":                                     func(d map[string]string) { d[SecretKey] = "short" },
		"is not a time":                                    func(d map[string]string) { d[ExpirationKey] = "tomorrow" },
		`group "system:masters" must match`:                func(d map[string]string) { d[ExtraGroupsKey] = "system:masters" },
		`group " system:bootstrappers:a" must match`:       func(d map[string]string) { d[ExtraGroupsKey] = "system:bootstrappers:b, system:bootstrappers:a" },
		`group "system:bootstrappers:" must match \Asyste`: func(d map[string]string) { d[ExtraGroupsKey] = "system:bootstrappers:" },
	} {
		if _, err := Read(stored(change)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
	opaque := stored(nil)
	opaque.Type = corev1.SecretTypeOpaque
	if _, err := Read(opaque); err == nil {
		t.Error("any Secret is a token")
	}
}
