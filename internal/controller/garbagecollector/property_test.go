package garbagecollector

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/bayplan/bayplan/internal/controller/controllertest"
)

// guard watches every delete of the collector: none of the deleted object's owners may live, except such as wait in a foreground
// deletion for just this.
type guard struct {
	alive  map[types.UID]bool // owners that are there and not waiting
	owners map[string][]types.UID
	broken string
}

func (g *guard) see(api *controllertest.API, r controllertest.Request) {
	if r.Resource.Resource != "configmaps" {
		return
	}
	if r.Verb == "delete" && !r.FromOutside() && g.broken == "" {
		for _, owner := range g.owners[r.Name] {
			if g.alive[owner] {
				g.broken = fmt.Sprintf("%s was deleted though its owner %s lives", r.Name, owner)
			}
		}
	}
	clear(g.alive)
	clear(g.owners)
	for _, o := range api.Objects("configmaps") {
		g.alive[o.GetUID()] = o.GetDeletionTimestamp() == nil || !strings.Contains(fmt.Sprint(o.GetFinalizers()), metav1.FinalizerDeleteDependents)
		for _, ref := range o.GetOwnerReferences() {
			g.owners[o.GetName()] = append(g.owners[o.GetName()], ref.UID)
		}
	}
}

// The collector deletes nothing that has a living owner, and in the end everything whose owners are all gone, whatever graph of owners and whatever
// order of deletions with whatever policy.
func TestNothingWithALivingOwnerIsDeleted(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		objects := rapid.IntRange(2, 10).Draw(rt, "objects")
		deletions := rapid.IntRange(1, 6).Draw(rt, "deletions")
		if problem := collect(t, seed, objects, deletions); problem != "" {
			rt.Fatal(problem)
		}
	})
}

func collect(t *testing.T, seed uint64, objects, deletions int) (problem string) {
	random := rand.New(rand.NewPCG(seed, 2))
	controllertest.Bubble(t, func(_ *testing.T, e *controllertest.Env) {
		g := &guard{alive: map[types.UID]bool{}, owners: map[string][]types.UID{}}
		e.API.Observe = func(r controllertest.Request) { g.see(e.API, r) }
		for i := range objects {
			e.Command("apply", fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: o%d, ownerReferences: [%s]}", i, someOwners(e, random, i)))
		}
		for range deletions {
			policy := []string{"Background", "Foreground", "Orphan"}[random.IntN(3)]
			e.Command(fmt.Sprintf("delete configmaps o%d %s", random.IntN(objects), policy), "")
		}
		problem = g.broken
		if problem == "" {
			problem = leftovers(g)
		}
	}, New)
	return problem
}

// someOwners are references to up to two earlier objects.
func someOwners(e *controllertest.Env, random *rand.Rand, i int) string {
	var refs []string
	for range random.IntN(3) {
		if i == 0 {
			break
		}
		name := fmt.Sprint("o", random.IntN(i))
		owner, err := e.Client.CoreV1().ConfigMaps("default").Get(e.Context(), name, metav1.GetOptions{})
		if err != nil || strings.Contains(strings.Join(refs, ""), string(owner.UID)) {
			continue
		}
		refs = append(refs, fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, name: %s, uid: %s, blockOwnerDeletion: %v}", name, owner.UID, random.IntN(2) == 0))
	}
	return strings.Join(refs, ", ")
}

// leftovers finds an object whose owners are all gone.
func leftovers(g *guard) string {
	for name, owners := range g.owners {
		gone := 0
		for _, owner := range owners {
			if _, there := g.alive[owner]; !there {
				gone++
			}
		}
		if gone == len(owners) {
			return name + " is still there, its owners are gone"
		}
	}
	return ""
}
