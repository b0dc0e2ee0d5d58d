// Package house holds the rules of the house, architecture.md's and our own, as tests that read the code.
package house

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"
)

const module = "github.com/bayplan/bayplan/"

// rule forbids imports. It is about packages below From except those below Except (all paths inside the module), and names what they must not import: prefixes of import paths, or
// of paths inside the module when they begin with "./".
type rule struct {
	name    string
	from    []string
	except  []string
	forbids []string
	// composes is the one package of From that puts the others together.
	composes string
	// deep looks at what is imported through others, too.
	deep bool
	why  string
}

// rooms speak to each other through the Kubernetes API only.
var rooms = []string{"internal/controller", "internal/proxy", "internal/dns", "internal/fleet", "internal/node", "internal/dashboard"}

func rules() []rule {
	all := []rule{
		{
			name: "no k8s.io/kubernetes", from: []string{""}, forbids: []string{"k8s.io/kubernetes"}, deep: true,
			why: "the product is its own implementation; reference programs belong to the modules under test/",
		},
		{
			name: "the scheduler's core has no client", from: []string{"internal/scheduler/"}, composes: "internal/scheduler/",
			except: []string{"internal/scheduler/source", "internal/scheduler/bind", "internal/scheduler/adapter", "internal/scheduler/volume",
				"internal/scheduler/explain"},
			forbids: []string{"k8s.io/client-go", "k8s.io/apiserver", "./internal/apiserver"},
			why:     "the same code runs in the cluster, alone and in the simulator",
		},
		{
			name: "the API server knows no other part", from: []string{"internal/apiserver"},
			forbids: []string{"./internal/controller", "./internal/scheduler", "./internal/node", "./internal/cluster", "./internal/cli"},
			why:     "parts meet through the API",
		},
		{
			name: "nothing but main imports the command line", from: []string{"internal/", "testcluster", "framework", "api"}, except: []string{"internal/cli"},
			forbids: []string{"./internal/cli"},
			why:     "kubectl ends the process and owns global flags",
		},
	}
	for _, room := range rooms {
		forbids := []string{"./internal/apiserver", "./internal/scheduler", "./internal/cluster", "./internal/cli"}
		for _, other := range rooms {
			if other != room {
				forbids = append(forbids, "./"+other)
			}
		}
		all = append(all, rule{name: room + " stands alone", from: []string{room}, forbids: forbids, why: "rooms speak client-go"})
	}
	return all
}

type listed struct {
	ImportPath string
	Imports    []string
	Deps       []string
}

func listPackages(t *testing.T) []listed {
	t.Helper()
	out, err := exec.Command("go", "list", "-deps=false", "-json=ImportPath,Imports,Deps", module+"...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []listed
	decoder := json.NewDecoder(bytes.NewReader(out))
	for {
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

func TestImports(t *testing.T) {
	packages := listPackages(t)
	if len(packages) < 20 {
		t.Fatalf("go list found %d packages only", len(packages))
	}
	for _, r := range rules() {
		for _, p := range packages {
			for _, bad := range r.broken(p) {
				t.Errorf("%s: %s imports %s (%s)", r.name, p.ImportPath, bad, r.why)
			}
		}
	}
}

func (r rule) broken(p listed) []string {
	path := strings.TrimPrefix(p.ImportPath+"/", module)
	if !anyPrefix(path, r.from) || anyPrefix(path, r.except) || path == r.composes {
		return nil
	}
	imports := p.Imports
	if r.deep {
		imports = p.Deps
	}
	var bad []string
	for _, i := range imports {
		for _, f := range r.forbids {
			if inside, ok := strings.CutPrefix(f, "./"); ok {
				f = module + inside
			}
			if i == f || strings.HasPrefix(i, f+"/") {
				bad = append(bad, i)
			}
		}
	}
	return bad
}

func anyPrefix(path string, prefixes []string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(path, p) {
			return true
		}
	}
	return false
}

// TestRulesCanFail keeps the test above honest.
func TestRulesCanFail(t *testing.T) {
	for _, test := range []struct {
		from, imports string
		want          bool
	}{
		{"internal/controller/job", module + "internal/node/worker", true},
		{"internal/controller/job", module + "internal/controller", false},
		{"internal/node", module + "internal/apiserver", true},
		{"internal/node", module + "internal/qos", false},
		{"internal/scheduler/cycle", "k8s.io/client-go/kubernetes", true},
		{"internal/scheduler/bind", "k8s.io/client-go/kubernetes", false},
		{"internal/scheduler", "k8s.io/client-go/kubernetes", false},
		{"internal/apiserver/relay", module + "internal/node", true},
		{"internal/cluster", module + "internal/cli", true},
		{"cmd/bayplan", module + "internal/cli", false},
		{"testcluster", "k8s.io/kubernetes/pkg/apis/core", true},
	} {
		p := listed{ImportPath: module + test.from, Imports: []string{test.imports}, Deps: []string{test.imports}}
		got := false
		for _, r := range rules() {
			got = got || len(r.broken(p)) > 0
		}
		if got != test.want {
			t.Errorf("%s imports %s: broken %v, want %v", test.from, test.imports, got, test.want)
		}
	}
}
