package rbac

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
)

// Index is what is known of roles and bindings. The zero value is not usable; NewIndex makes an empty one.
type Index struct {
	mu    sync.RWMutex
	roles map[key]*role
	// bound are the subjects of each binding as they are indexed, to take them out again.
	bound map[key]binding
	// cluster are the grants of ClusterRoleBindings, local those of RoleBindings by namespace.
	cluster subjects
	local   map[string]subjects
	// changed is closed at the next change; nil while nobody waits for one.
	changed chan struct{}
}

// key is a role's or binding's namespace, empty for those that hold everywhere, and name.
type key struct{ namespace, name string }

// role is shared by all grants of it. It is there, empty and not found, as soon as a binding speaks of it.
type role struct {
	key   key
	rules []rbacv1.PolicyRule
	found bool
	// bindings is how many speak of it.
	bindings int
}

// subject is a user or group.
type subject struct {
	name  string
	group bool
}

type subjects map[subject][]grant

// grant is what one binding gives to one subject.
type grant struct {
	binding string
	role    *role
	// reason is what is told when the grant allowed something.
	reason string
}

type binding struct {
	role     *role
	subjects []subject
}

// NewIndex returns an index that knows of nothing.
func NewIndex() *Index {
	return &Index{roles: map[key]*role{}, bound: map[key]binding{}, cluster: subjects{}, local: map[string]subjects{}}
}

// SetRole says which rules a Role has, or a ClusterRole when there is no namespace.
func (x *Index) SetRole(namespace, name string, rules []rbacv1.PolicyRule) {
	x.mu.Lock()
	defer x.mu.Unlock()
	r := x.role(key{namespace, name})
	r.rules, r.found = rules, true
	x.tell()
}

// DeleteRole says that a role is no more. Its bindings stay, and grant nothing.
func (x *Index) DeleteRole(namespace, name string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if r := x.roles[key{namespace, name}]; r != nil {
		r.rules, r.found = nil, false
		x.release(r)
	}
}

// SetBinding says whom a RoleBinding, or a ClusterRoleBinding when there is no namespace, gives which role.
func (x *Index) SetBinding(namespace, name string, ref rbacv1.RoleRef, who []rbacv1.Subject) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.remove(key{namespace, name})
	at := key{name: ref.Name}
	switch {
	case ref.Kind == "ClusterRole":
	case ref.Kind == "Role" && namespace != "":
		at.namespace = namespace
	default:
		return
	}
	b := binding{role: x.role(at)}
	b.role.bindings++
	for i := range who {
		s, ok := subjectOf(&who[i], namespace)
		if !ok || slices.Contains(b.subjects, s) {
			continue
		}
		b.subjects = append(b.subjects, s)
		x.add(namespace, s, grant{binding: name, role: b.role, reason: reason(namespace, name, ref, &who[i])})
	}
	x.bound[key{namespace, name}] = b
	x.tell()
}

// DeleteBinding says that a binding is no more.
func (x *Index) DeleteBinding(namespace, name string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.remove(key{namespace, name})
}

func (x *Index) role(at key) *role {
	r := x.roles[at]
	if r == nil {
		r = &role{key: at}
		x.roles[at] = r
	}
	return r
}

// release forgets a role that neither exists nor is spoken of.
func (x *Index) release(r *role) {
	if !r.found && r.bindings == 0 {
		delete(x.roles, r.key)
	}
}

// add keeps a subject's grants in the order of their bindings' names, so that the reason of a decision does not depend on the order of events.
func (x *Index) add(namespace string, s subject, g grant) {
	in := x.cluster
	if namespace != "" {
		if in = x.local[namespace]; in == nil {
			in = subjects{}
			x.local[namespace] = in
		}
	}
	at, _ := find(in[s], g.binding)
	in[s] = slices.Insert(in[s], at, g)
}

func (x *Index) remove(at key) {
	b, ok := x.bound[at]
	if !ok {
		return
	}
	delete(x.bound, at)
	in := x.cluster
	if at.namespace != "" {
		in = x.local[at.namespace]
	}
	for _, s := range b.subjects {
		if i, ok := find(in[s], at.name); ok {
			in[s] = slices.Delete(in[s], i, i+1)
		}
		if len(in[s]) == 0 {
			delete(in, s)
		}
	}
	if at.namespace != "" && len(in) == 0 {
		delete(x.local, at.namespace)
	}
	b.role.bindings--
	x.release(b.role)
}

func find(grants []grant, binding string) (int, bool) {
	return slices.BinarySearchFunc(grants, binding, func(g grant, name string) int { return strings.Compare(g.binding, name) })
}

// subjectOf is the subject as it is indexed. A service account without a namespace is one of the binding's.
func subjectOf(s *rbacv1.Subject, namespace string) (subject, bool) {
	switch s.Kind {
	case rbacv1.UserKind:
		return subject{name: s.Name}, true
	case rbacv1.GroupKind:
		return subject{name: s.Name, group: true}, true
	case rbacv1.ServiceAccountKind:
		if s.Namespace != "" {
			namespace = s.Namespace
		}
		return subject{name: serviceaccount.MakeUsername(namespace, s.Name)}, namespace != ""
	}
	return subject{}, false
}

func reason(namespace, name string, ref rbacv1.RoleRef, s *rbacv1.Subject) string {
	kind, who := "ClusterRoleBinding", s.Name
	if s.Kind == rbacv1.ServiceAccountKind {
		who += "/" + s.Namespace
		if s.Namespace == "" {
			who += namespace
		}
	}
	if namespace != "" {
		kind, name = "RoleBinding", name+"/"+namespace
	}
	return fmt.Sprintf("RBAC: allowed by %s %q of %s %q to %s %q", kind, name, ref.Kind, ref.Name, s.Kind, who)
}

// notFound are roles that bindings speak of and that are not there.
type notFound []*role

func (n notFound) err() error {
	var errs []error
	for _, r := range n {
		kind := "role"
		if r.key.namespace == "" {
			kind = "clusterrole"
		}
		errs = append(errs, errors.New(apierrors.NewNotFound(rbacv1.Resource(kind), r.key.name).Error()))
	}
	return utilerrors.NewAggregate(errs)
}
