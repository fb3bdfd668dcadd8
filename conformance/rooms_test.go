package conformance

import (
	"slices"
	"strings"
	"testing"
)

// rooms are the packages of the module, from the top down. A package may import only those on
// lines below its own. What is on one line does not know of each other.
var rooms = [][]string{
	{"conformance", "interop", "interop/agents", "bench"}, // tests of the whole
	{"bench/echo", "bench/flood", "bench/proxy_stream"},
	{"interop/program"},
	{"interop/gosdk", "interop/modelserver", "interop/pipes", "interop/schema", "interop/scripted", "interop/stock"},
	{"internal/dirtest", "internal/logtest", "internal/mcptest", "internal/npmtest", "internal/proctest"}, // above the product: only tests import them
	{"cmd/acp-agent"},
	{"acp"},
	{"acp/explore", "acp/proxy", "acp/mcpservers"},
	{"acp/proxy/profile", "acp/mcprelay"},
	{"acp/client"},
	{"acp/runtime"},
	{"acp/child"},
	{"acp/wire"},
	{"acp/strict"},
	{"workspace/mcpserver"},
	{"workspace/mcproots"},
	{"workspace/tools"},
	{"discovery"},
	{"sessionstore/sqlite", "sessionstore/storetest"},
	{"sessionstore"},
	{"workspace"},
	{"workspace/ignore", "workspace/containmenttest"},
	{"framing", "private", "violation"},
}

// reserved are the modules that few packages may import: acp/strict reads what clients send, and
// sessionstore what a history holds.
var reserved = map[string][]string{
	"github.com/go-json-experiment/json": {"acp/strict", "sessionstore"},
	"modernc.org/sqlite":                 {"sessionstore/sqlite"},
}

func floor(dir string) int {
	return slices.IndexFunc(rooms, func(line []string) bool { return slices.Contains(line, dir) })
}

func within(importPath, parent string) bool {
	return importPath == parent || strings.HasPrefix(importPath, parent+"/")
}

// Tests may import what they like, such as a suite that imports the package under test.
func TestImportsPointDown(t *testing.T) {
	for _, s := range sources(t) {
		from := floor(s.dir())
		if from < 0 {
			t.Errorf("%s: package %s has no place yet: put it into the table rooms in conformance/rooms_test.go, "+
				"above all that it imports and below all that imports it", s.path, s.dir())
			continue
		}
		if s.test {
			continue
		}
		for _, imported := range s.imports() {
			dir, ours := strings.CutPrefix(imported, module+"/")
			if ours && floor(dir) <= from {
				t.Errorf("%s imports %s, which is not below it in the table rooms of conformance/rooms_test.go: "+
					"turn the dependency round, with an interface or a value that the upper package gives", s.path, dir)
			}
		}
	}
}

func TestSomeModulesHaveFewImporters(t *testing.T) {
	for _, s := range sources(t) {
		for _, imported := range s.imports() {
			for reservedModule, owners := range reserved {
				if within(imported, reservedModule) && !slices.Contains(owners, s.dir()) {
					t.Errorf("%s imports %s: only %s do, use what they export", s.path, imported, strings.Join(owners, " and "))
				}
			}
		}
	}
}
