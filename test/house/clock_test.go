package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// root is the module's folder, seen from this package.
const root = "../.."

// sourceFiles calls visit with each hand-written Go file below dir that is not a test.
func sourceFiles(t *testing.T, dir string, visit func(path string, file *ast.File, set *token.FileSet)) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(root, dir), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.HasPrefix(entry.Name(), "zz_generated") {
			return err
		}
		set := token.NewFileSet()
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(set, path, data, parser.ParseComments)
		if err != nil {
			return err
		}
		visit(path, file, set)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestSchedulerReadsNoClock: all time reaches the scheduler through an injected clock, so that it runs the same in the simulator.
func TestSchedulerReadsNoClock(t *testing.T) {
	reads := map[string]bool{"Now": true, "Since": true, "Until": true, "After": true, "AfterFunc": true, "NewTimer": true, "NewTicker": true, "Tick": true, "Sleep": true}
	sourceFiles(t, "internal/scheduler", func(path string, file *ast.File, set *token.FileSet) {
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			selector, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if pkg, ok := selector.X.(*ast.Ident); ok && pkg.Name == "time" && reads[selector.Sel.Name] {
				t.Errorf("%s: time.%s reads the machine's clock; take a clock.Clock", set.Position(call.Pos()), selector.Sel.Name)
			}
			return true
		})
	})
}

// TestPackageComments: every package says what it is for.
func TestPackageComments(t *testing.T) {
	documented := map[string]bool{}
	for _, dir := range []string{"internal", "cmd", "testcluster", "examples"} {
		sourceFiles(t, dir, func(path string, file *ast.File, _ *token.FileSet) {
			documented[filepath.Dir(path)] = documented[filepath.Dir(path)] || file.Doc != nil
		})
	}
	for dir, ok := range documented {
		if !ok {
			t.Errorf("%s: no package comment", strings.TrimPrefix(dir, root+"/"))
		}
	}
}
