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

// floors are the folders of the module from top to bottom. A package may import packages of its own
// floor and of those below. The longest name that its directory begins with says where it is.
var floors = [][]string{
	{"internal/test", "internal/release"}, // tests of the whole program, and what builds a release
	{"cmd", "internal/cli"},
	{"internal/config", "internal/conform", "internal/serve", "internal/terminal", "internal/web"},
	{"acp", "internal/history"},
	{"acp/mcp", "discovery", "internal/llm", "internal/mcp", "internal/permission", "internal/process", "internal/sandbox", "internal/usage", "internal/worktree", "sessionstore", "workspace"},
	{"internal/files", "internal/text", "internal/version", "internal/wire"},
}

// reserved are modules that only the listed packages may import.
var reserved = map[string][]string{
	"github.com/go-json-experiment/json": {"internal/wire/strictjson", "internal/cli/registry", "internal/config", "internal/config/setup", "sessionstore"},
	"github.com/jackc/pgx":               {"internal/test/pgtest", "sessionstore/postgres"},
	"modernc.org/sqlite":                 {"sessionstore/sqlite"},
}

// floor returns the number of a package's floor, and -1 if it is on none.
func floor(dir string) int {
	found, longest := -1, ""
	for i, names := range floors {
		for _, name := range names {
			if (dir == name || strings.HasPrefix(dir, name+"/")) && len(name) > len(longest) {
				found, longest = i, name
			}
		}
	}
	return found
}

// Tests may import anything, for example a suite that imports the package under test.
func TestImportsPointDown(t *testing.T) {
	for _, s := range sources(t) {
		from := floor(s.dir())
		if from < 0 {
			t.Errorf("%s: add the folder of %s to the floors in internal/test/conformance/layers_test.go", s.path, s.dir())
		}
		for _, imported := range s.imports() {
			if dir, ours := strings.CutPrefix(imported, module+"/"); ours && !s.test && floor(dir) < from {
				t.Errorf("%s imports %s, which is above it in internal/test/conformance/layers_test.go", s.path, dir)
			}
		}
	}
}

func TestReservedModules(t *testing.T) {
	for _, s := range sources(t) {
		for _, imported := range s.imports() {
			for module, owners := range reserved {
				if (imported == module || strings.HasPrefix(imported, module+"/")) && !slices.Contains(owners, s.dir()) {
					t.Errorf("%s imports %s: only %s may", s.path, imported, strings.Join(owners, " and "))
				}
			}
		}
	}
}

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

// reasons match the reasons in errors' data, which programs of others read.
var reasons = []*regexp.Regexp{
	regexp.MustCompile(`reasonData\{Reason: "(\w+)"`),
	regexp.MustCompile(`"reason": ?"(\w+)"`),
	regexp.MustCompile(`storeUnavailable = "(\w+)"`),
	regexp.MustCompile(`Slot: \{"[^"]*", "(\w+)"`),
	regexp.MustCompile(`\bReason = "(\w+)"`),
}

func TestReasonsOfErrorsAreDocumented(t *testing.T) {
	document, err := os.ReadFile(filepath.Join(repository, "docs", "protocol.md"))
	require.NoError(t, err)
	found := map[string]bool{}
	for _, s := range sources(t) {
		dir := s.dir()
		if s.test || !strings.HasPrefix(dir+"/", "acp/") && dir != "internal/serve" &&
			dir != "internal/wire/strictjson" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(repository, s.path))
		require.NoError(t, err)
		for _, pattern := range reasons {
			for _, match := range pattern.FindAllSubmatch(text, -1) {
				found[string(match[1])] = true
				require.Contains(t, string(document), "`"+string(match[1])+"`", s.path)
			}
		}
	}
	for _, one := range []string{"fenced", "store_unavailable", "too_many_turns", "too_many_processes", "nul"} {
		require.True(t, found[one], "%s: the patterns find too little", one)
	}
}
