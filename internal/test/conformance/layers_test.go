package conformance

import (
	"slices"
	"strings"
	"testing"
)

// layers are the packages of the module from top to bottom. A package may import only packages on
// the lines below its own; packages on one line do not know of each other.
var layers = [][]string{
	{"internal/test/platforms", "internal/test/conformance", "internal/test/interop", "internal/test/interop/agents", "internal/test/bench"}, // tests of the whole program
	{"internal/release"},
	{"internal/test/bench/echo", "internal/test/bench/flood", "internal/test/bench/proxy_stream", "internal/test/interop/remote"},
	{"internal/test/interop/program"},
	{"internal/test/interop/gosdk", "internal/test/interop/modelserver", "internal/test/interop/pipes", "internal/test/interop/schema", "internal/test/interop/scripted", "internal/test/interop/stock", "internal/test/interop/terminals"},
	{"internal/test/pgtest"}, // imported by tests only
	{"internal/test/cable", "internal/test/dirtest", "internal/test/logtest", "internal/test/mcptest", "internal/test/memstore", "internal/test/npmtest", "internal/test/proctest", "internal/test/roottest", "internal/test/storetest", "internal/test/terminal"}, // imported by tests only
	{"internal/test/fusetest", "internal/test/needs", "internal/test/volume"},
	{"cmd/acp-agent"},
	{"internal/cli/doctor"},
	{"internal/runner", "internal/config/setup"},
	{"internal/config/inventory"},
	{"internal/config", "internal/serve"},
	{"internal/web/page"},
	{"acp", "internal/agents", "internal/web/inspect", "internal/history/sessions", "internal/terminal"},
	{"acp/explore", "acp/model", "acp/proxy", "acp/internal/servers/found", "acp/internal/servers"},
	{"acp/proxy/profiles", "internal/history/handoff"},
	{"acp/client", "acp/internal/commands/filechange", "acp/internal/commands", "acp/internal/listing", "acp/internal/session/metering", "acp/internal/session/turns", "internal/history/conversation"},
	{"acp/backend", "acp/internal/session/tasks", "acp/prompts"},
	{"internal/mcp/mcpclient", "internal/mcp/mcprelay", "internal/permission", "internal/worktree"},
	{"internal/permission/commandline", "internal/llm", "internal/process"},
	{"internal/mcp/mcpserver", "internal/permission/consent"},
	{"internal/mcp/mcproots"},
	{"workspace/tools"},
	{"discovery", "internal/text/usage"},
	{"sessionstore/postgres", "sessionstore/sqlite"},
	{"sessionstore/internal/core"},
	{"sessionstore"},
	{"workspace"},
	{"internal/files/gitignore", "internal/test/containmenttest", "internal/files/dirfd"},
	{"acp/mcp", "internal/wire/jsonrpc", "internal/wire/protocol", "internal/text/secret"},
	{"internal/wire/strictjson"},
	{"internal/files/namedfile"},
	{"internal/serve/loglimit", "internal/history/markdown", "internal/serve/websocket", "internal/files/privatefile", "internal/sandbox", "internal/text", "internal/version"},
	{"internal/serve/budget", "internal/sandbox/hosts", "internal/text/pause", "internal/wire/sse"},
	{"internal/sandbox/reach"},
}

// reserved are modules that only the listed packages may import.
var reserved = map[string][]string{
	"github.com/go-json-experiment/json": {"internal/wire/strictjson", "internal/agents", "internal/config", "internal/config/setup", "sessionstore"},
	"github.com/jackc/pgx":               {"internal/test/pgtest", "sessionstore/postgres"},
	"modernc.org/sqlite":                 {"sessionstore/sqlite"},
}

func layer(dir string) int {
	return slices.IndexFunc(layers, func(line []string) bool { return slices.Contains(line, dir) })
}

// Tests may import anything, for example a suite that imports the package under test.
func TestImportsPointDown(t *testing.T) {
	for _, s := range sources(t) {
		from := layer(s.dir())
		if from < 0 {
			t.Errorf("%s: add package %s to the table in internal/test/conformance/layers_test.go, above everything it imports", s.path, s.dir())
			continue
		}
		if s.test {
			continue
		}
		for _, imported := range s.imports() {
			if dir, ours := strings.CutPrefix(imported, module+"/"); ours && layer(dir) <= from {
				t.Errorf("%s imports %s, which is not below it in internal/test/conformance/layers_test.go", s.path, dir)
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
