// Package resourcetest runs transcripts of validation: testdata/validation.txt of a group's folder has manifests, in YAML on one line after the kind, and below each
// what defaults and validation make of it:
//
//	Deployment {spec: {replicas: -1}}
//	=> spec.replicas: Invalid value: -1: must be greater than or equal to 0
//
// "Kind {...} -> {...}" is an update from the first to the second. The flag -update rewrites what follows "=>".
package resourcetest

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/bayplan/bayplan/internal/apiserver/resource"
)

var update = flag.Bool("update", false, "rewrite testdata")

// Check validates a manifest, or its update when old is not empty.
type Check func(t testing.TB, old, manifest string) field.ErrorList

// Of checks manifests of a kind in the way the server does: defaults, preparation, validation.
func Of[T resource.Object](k *resource.Kind[T]) Check {
	parse := func(t testing.TB, text string) T {
		obj := k.New()
		if err := yaml.UnmarshalStrict([]byte(text), obj); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if k.Default != nil {
			k.Default(obj)
		}
		return obj
	}
	return func(t testing.TB, old, manifest string) field.ErrorList {
		obj := parse(t, manifest)
		if old == "" {
			if k.PrepareCreate != nil {
				k.PrepareCreate(t.Context(), obj)
			}
			return k.Validate(obj)
		}
		former := parse(t, old)
		if k.PrepareCreate != nil {
			k.PrepareCreate(t.Context(), former)
		}
		if k.PrepareUpdate != nil {
			k.PrepareUpdate(t.Context(), obj, former)
		}
		if k.ValidateUpdate != nil {
			return k.ValidateUpdate(obj, former)
		}
		return k.Validate(obj)
	}
}

// Run checks testdata/validation.txt.
func Run(t *testing.T, checks map[string]Check) {
	t.Helper()
	path := filepath.Join("testdata", "validation.txt")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for block := range strings.SplitSeq(strings.TrimSpace(string(data)), "\n\n") {
		manifest, _, _ := strings.Cut(block, "\n=> ")
		out = append(out, manifest+verdict(t, checks, manifest))
	}
	got := strings.Join(out, "\n\n") + "\n"
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil { //nolint:gosec // a file of the source
			t.Fatal(err)
		}
		return
	}
	if got != string(data) {
		t.Errorf("%s is not what validation says; run with -update and look at the difference. Got:\n%s", path, got)
	}
}

func verdict(t *testing.T, checks map[string]Check, manifest string) string {
	kind, text, _ := strings.Cut(manifest, " ")
	check, ok := checks[kind]
	if !ok {
		t.Fatalf("no check of the kind in %q", manifest)
	}
	old, now, ok := strings.Cut(text, " -> ")
	if !ok {
		old, now = "", text
	}
	errs := check(t, old, now)
	if len(errs) == 0 {
		return "\n=> valid"
	}
	var lines []string
	for _, err := range errs {
		lines = append(lines, "\n=> "+strings.ReplaceAll(err.Error(), "\n", " "))
	}
	// Validation walks maps in any order.
	slices.Sort(lines)
	return strings.Join(lines, "")
}
