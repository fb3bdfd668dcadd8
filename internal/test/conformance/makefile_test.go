package conformance

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every package in which goroutines are started is tested with the race detector, except those that
// are listed here. The lists of the Makefile name packages that exist.
func TestConcurrentPackagesAreRaced(t *testing.T) {
	elsewhere := []string{
		"internal/cli", // make kills runs its scripts with the race detector
		"internal/web", // a browser walks through large pages
		"internal/release", "internal/test/*", "internal/test/*/*", "internal/test/*/*/*",
	}
	text, err := os.ReadFile(filepath.Join(repository, "Makefile"))
	require.NoError(t, err)
	listed := make(map[string][]string)
	for _, m := range regexp.MustCompile(`(?m)^(\w+) *:= \$\(addprefix \./,([^)]*)\)$`).FindAllSubmatch(text, -1) {
		listed[string(m[1])] = strings.Fields(strings.ReplaceAll(string(m[2]), `\`, ""))
		for _, dir := range listed[string(m[1])] {
			require.DirExists(t, filepath.Join(repository, dir), "%s in the Makefile", m[1])
		}
	}
	require.Len(t, listed, 3, "LONGEST, RACED and RACEDLONG")
	raced := slices.Concat(listed["RACED"], listed["RACEDLONG"], elsewhere)
	for _, s := range sources(t) {
		if s.test || slices.ContainsFunc(raced, func(pattern string) bool { return matches(pattern, s.dir()) }) {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if startsGoroutine(n) {
				t.Errorf("%s starts a goroutine: add %s to RACED in the Makefile, or to RACEDLONG if its tests take minutes with the race detector",
					s.at(n), s.dir())
			}
			return true
		})
	}
}

// startsGoroutine reports whether n is a go statement, or a call of the method Go of a group.
func startsGoroutine(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.GoStmt:
		return true
	case *ast.CallExpr:
		f, ok := n.Fun.(*ast.SelectorExpr)
		return ok && f.Sel.Name == "Go"
	}
	return false
}
