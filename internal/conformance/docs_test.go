package conformance

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Some clauses require the documentation to state something.
func TestDocsStateWhatClausesPromise(t *testing.T) {
	for name, c := range map[string]struct {
		file string
		says []string
	}{
		"P5/what is not contained":   {"docs/security.md", []string{"sandbox", "bubblewrap", "container"}},
		"P5/what mediation promises": {"docs/security.md", []string{"`fs/*`", "never reaches the editor"}},
		"M2/consent":                 {"docs/mcp.md", []string{"counts as your consent"}},
		"M7/deprecated":              {"docs/decisions.md", []string{"SEP-2577"}},
		"M10/why":                    {"docs/mcp.md", []string{"until a valid list"}},
		"S1/power loss":              {"README.md", []string{"power failure"}},
	} {
		t.Run(name, func(t *testing.T) {
			raw, err := os.ReadFile(filepath.Join(repository, filepath.FromSlash(c.file)))
			require.NoError(t, err)
			text := strings.Join(strings.Fields(string(raw)), " ")
			for _, phrase := range c.says {
				require.Contains(t, text, phrase, c.file)
			}
		})
	}
}
