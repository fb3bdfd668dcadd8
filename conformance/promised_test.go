package conformance

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Some clauses say that the docs say something.
func TestTheDocsSayWhatTheClausesPromise(t *testing.T) {
	for name, c := range map[string]struct {
		file string
		says []string
	}{
		"P5/what is not contained": {"docs/security.md", []string{
			"Not promised", "What a child agent does on the disk by itself", "MCP servers that it starts", "sandbox", "bubblewrap", "container",
		}},
		"P5/what mediation promises": {"docs/security.md", []string{
			"`fs/*`, `terminal/create`", "the declared `path` or `cwd`, at that time", "never reaches the editor", "Mediation is of declared paths",
		}},
		"M2/consent":    {"docs/mcp.md", []string{"Naming a server together with folders counts as your consent"}},
		"M7/deprecated": {"docs/decisions.md", []string{"Roots and sampling, though they are deprecated", "SEP-2577", "servers that people run ask for them"}},
		"M10/why":       {"docs/mcp.md", []string{"the scope is closed until a valid list comes", "a client that takes a folder away means it"}},
		"S1/power loss": {"README.md", []string{"survives the death of the process", "a power failure may lose", "never the file"}},
	} {
		t.Run(name, func(t *testing.T) {
			raw, err := os.ReadFile(filepath.Join("..", filepath.FromSlash(c.file)))
			require.NoError(t, err)
			text := strings.Join(strings.Fields(string(raw)), " ")
			for _, phrase := range c.says {
				require.Contains(t, text, phrase, c.file)
			}
		})
	}
}
