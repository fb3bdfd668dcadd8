package conformance

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// The working directory and the file mode mask belong to the whole process, and with it to every
// session in it.
//
// Clause A22.
func TestNothingChangesTheProcess(t *testing.T) {
	for _, s := range sources(t) {
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Recv == nil && n.Name.Name == "init" {
					t.Errorf("%s: func init: make a value where it is needed and pass it on", s.at(n))
				}
			case *ast.CallExpr:
				if f, ok := n.Fun.(*ast.SelectorExpr); ok && changesTheProcess(s, f) {
					t.Errorf("%s: %s changes the process for every session in it: "+
						"pass a directory or a mode instead (in a test, t.Chdir)", s.at(n), f.Sel.Name)
				}
			}
			return true
		})
	}
}

func changesTheProcess(s source, f *ast.SelectorExpr) bool {
	if s.path == "internal/sandbox/namespace_linux.go" {
		return false // a thread with mounts of its own has a working directory of its own
	}
	switch f.Sel.Name {
	case "Chdir", "Fchdir":
		receiver, ok := f.X.(*ast.Ident)
		return !s.test || ok && receiver.Name == "os"
	case "Umask":
		return !s.test
	}
	return false
}

// starters are the functions and types that start a process.
var starters = map[string][]string{
	"exec":    {"Command", "CommandContext", "Cmd"},
	"os":      {"StartProcess"},
	"syscall": {"Exec", "ForkExec", "StartProcess"},
	"unix":    {"Exec"},
	"windows": {"CreateProcess", "CreateProcessAsUser"},
}

// What holds for every child, such as a sandbox, has one place: start in internal/process. What
// builds and tests the program is not part of it.
func TestChildrenStartInOnePlace(t *testing.T) {
	others := []string{"internal/process", "internal/release"}
	for _, s := range sources(t) {
		if s.test || slices.Contains(others, s.dir()) || strings.HasPrefix(s.path, "internal/test/") {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			f, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			pkg, ok := f.X.(*ast.Ident)
			if ok && slices.Contains(starters[pkg.Name], f.Sel.Name) {
				t.Errorf("%s: %s.%s starts a process: use internal/process", s.at(n), pkg.Name, f.Sel.Name)
			}
			return true
		})
	}
}
