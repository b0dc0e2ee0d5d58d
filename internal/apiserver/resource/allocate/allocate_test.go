package allocate

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/registry/rest"
	"pgregory.net/rapid"
)

// book is a registry of IPAddress in memory. What it does not implement is not called.
type book struct {
	rest.Lister
	held map[string]*networkingv1.IPAddress
}

func (b *book) New() runtime.Object { return &networkingv1.IPAddress{} }

func (b *book) Create(_ context.Context, obj runtime.Object, _ rest.ValidateObjectFunc, _ *metav1.CreateOptions) (runtime.Object, error) {
	a := obj.(*networkingv1.IPAddress)
	if b.held[a.Name] != nil {
		return nil, apierrors.NewAlreadyExists(networkingv1.Resource("ipaddresses"), a.Name)
	}
	a.UID = types.UID(a.Name)
	b.held[a.Name] = a
	return a, nil
}

func (b *book) Get(_ context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	if a := b.held[name]; a != nil {
		return a, nil
	}
	return nil, apierrors.NewNotFound(networkingv1.Resource("ipaddresses"), name)
}

func (b *book) List(context.Context, *metainternal.ListOptions) (runtime.Object, error) {
	list := &networkingv1.IPAddressList{}
	for _, a := range b.held {
		list.Items = append(list.Items, *a)
	}
	return list, nil
}

func (b *book) Delete(_ context.Context, name string, _ rest.ValidateObjectFunc, _ *metav1.DeleteOptions) (runtime.Object, bool, error) {
	delete(b.held, name)
	return nil, true, nil
}

func newAddresses(ranges ...string) (*Addresses, *book) {
	b := &book{held: map[string]*networkingv1.IPAddress{}}
	var prefixes []netip.Prefix
	for _, r := range ranges {
		prefixes = append(prefixes, netip.MustParsePrefix(r))
	}
	return &Addresses{Store: b, Ranges: func(context.Context) ([]netip.Prefix, error) { return prefixes, nil }}, b
}

func serviceNamed(name string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name)}}
}

// TestAddressesProperty hands out and takes back in any order: nothing is given twice, network and broadcast never, and a range is used up before it is full.
func TestAddressesProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bits := rapid.IntRange(26, 30).Draw(t, "bits")
		r := netip.PrefixFrom(netip.MustParseAddr("10.9.0.64"), bits).Masked()
		a, b := newAddresses(r.String())
		given := map[netip.Addr]string{}
		for i := range rapid.IntRange(1, 100).Draw(t, "steps") {
			if len(given) > 0 && rapid.Bool().Draw(t, "release") {
				taken := make([]netip.Addr, 0, len(given))
				for address := range given {
					taken = append(taken, address)
				}
				slices.SortFunc(taken, netip.Addr.Compare)
				address := rapid.SampledFrom(taken).Draw(t, "address")
				if err := a.Release(t.Context(), serviceNamed(given[address]), address); err != nil {
					t.Fatal(err)
				}
				delete(given, address)
				continue
			}
			name := rapid.StringMatching(`[a-z]{3}`).Draw(t, "name")
			address, err := a.Next(t.Context(), serviceNamed(name), false)
			if full := uint64(len(given)) == capacity(r); full != (err != nil) {
				t.Fatalf("step %d: %d of %d taken, and %v", i, len(given), capacity(r), err)
			}
			if err != nil {
				continue
			}
			if _, twice := given[address]; twice || !r.Contains(address) || address == r.Addr() || address == last(r) {
				t.Fatalf("%s was handed out of %s", address, r)
			}
			given[address] = name
		}
		if len(b.held) != len(given) {
			t.Fatalf("%d are held, %d were given", len(b.held), len(given))
		}
	})
}

func TestAddresses(t *testing.T) {
	a, b := newAddresses("10.0.0.0/24", "10.1.0.0/30", "fd00::/108")
	for text, problem := range map[string]string{
		"10.0.0.7": "", "10.1.0.1": "", "10.0.0.0": "not in the valid range", "10.0.0.255": "not in the valid range", "192.168.0.1": "not in the valid range", "fd00::1": "",
	} {
		err := a.Take(t.Context(), serviceNamed("s"), netip.MustParseAddr(text), false)
		if (err == nil) != (problem == "") || err != nil && !strings.Contains(err.Error(), problem) {
			t.Errorf("%s: %v, want %q", text, err, problem)
		}
	}
	if err := a.Take(t.Context(), serviceNamed("t"), netip.MustParseAddr("10.0.0.7"), true); !apierrors.IsAlreadyExists(err) {
		t.Errorf("a dry run of what is taken: %v", err)
	}
	// Another service's address is not released.
	if err := a.Release(t.Context(), serviceNamed("t"), netip.MustParseAddr("10.0.0.7")); err != nil || b.held["10.0.0.7"] == nil {
		t.Errorf("released: %v", err)
	}
	if family := b.held["fd00::1"].Labels[networkingv1.LabelIPAddressFamily]; family != "IPv6" {
		t.Errorf("family %s", family)
	}
}

// TestBitmapProperty compares the bitmap with a set, also when the range changes.
func TestBitmapProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first := rapid.Int32Range(1, 100).Draw(t, "first")
		p := &Ports{within: PortRange{first, first + rapid.Int32Range(0, 40).Draw(t, "size")}}
		b, want := p.bitmap(&corev1.RangeAllocation{}), map[int32]bool{}
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			port := rapid.Int32Range(0, 150).Draw(t, "port")
			if rapid.Bool().Draw(t, "release") {
				b.release(port)
				delete(want, port)
				continue
			}
			if could := p.within.contains(port) && !want[port]; b.take(port) != could {
				t.Fatalf("taking %d of %s", port, p.within)
			}
			if p.within.contains(port) {
				want[port] = true
			}
		}
		moved := &Ports{within: PortRange{p.within.First + 3, p.within.Last + 3}}
		carried := moved.bitmap(&corev1.RangeAllocation{Range: p.within.String(), Data: b.bits})
		for port := int32(0); port < 150; port++ {
			if b.has(port) != want[port] {
				t.Fatalf("port %d: %v", port, b.has(port))
			}
			if carried.has(port) != (want[port] && moved.within.contains(port)) {
				t.Fatalf("port %d in the new range: %v", port, carried.has(port))
			}
		}
	})
}

func TestTakenError(t *testing.T) {
	var taken *TakenError
	err := error(&TakenError{80, DefaultPorts})
	if !errors.As(err, &taken) || !strings.Contains(err.Error(), "The range of valid ports is 30000-32767") {
		t.Errorf("got %v", err)
	}
	if err := (&TakenError{30000, DefaultPorts}).Error(); err != "provided port is already allocated" {
		t.Errorf("got %s", err)
	}
}

func BenchmarkAddresses(b *testing.B) {
	b.ReportAllocs()
	a, _ := newAddresses("10.0.0.0/12")
	s := serviceNamed("s")
	for b.Loop() {
		address, err := a.Next(b.Context(), s, false)
		if err != nil {
			b.Fatal(err)
		}
		if err := a.Release(b.Context(), s, address); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkBitmap(b *testing.B) {
	b.ReportAllocs()
	p := &Ports{within: DefaultPorts}
	stored := &corev1.RangeAllocation{Range: DefaultPorts.String(), Data: make([]byte, 346)}
	for b.Loop() {
		p.bitmap(stored).take(31000)
	}
}
