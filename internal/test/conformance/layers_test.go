package conformance

import (
	"slices"
	"strings"
	"testing"
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
