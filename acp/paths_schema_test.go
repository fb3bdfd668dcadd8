package acp

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/workspace"
)

// namesAPath is how the schema describes a member that holds a path.
var namesAPath = regexp.MustCompile(`(?i)\b(path|directory)\b`)

// Of every request by which an agent reaches files or commands of the client, every member that the schema calls a path is
// checked.
func TestP4_EveryPathOfTheSchemaIsChecked(t *testing.T) {
	readDefinitions(t) // skips where there is no schema
	text, err := os.ReadFile(published)
	require.NoError(t, err)
	var document struct {
		Definitions map[string]struct {
			Side       string `json:"x-side"`
			Method     string `json:"x-method"`
			Properties map[string]struct{ Description string }
		} `json:"$defs"`
	}
	require.NoError(t, json.Unmarshal(text, &document))
	roots, err := workspace.NewRoots(t.TempDir(), nil)
	require.NoError(t, err)
	w, err := workspace.Open(t.Context(), roots, workspace.Options{})
	require.NoError(t, err)
	defer w.Close()
	outside := t.TempDir()
	var paths []string
	for name, d := range document.Definitions {
		if d.Side != "client" || !strings.HasSuffix(name, "Request") || !strings.HasPrefix(d.Method, "fs/") && !strings.HasPrefix(d.Method, "terminal/") {
			continue
		}
		for member, p := range d.Properties {
			if member == "_meta" || !namesAPath.MatchString(p.Description) {
				continue
			}
			paths = append(paths, d.Method+" "+member)
			params, err := json.Marshal(map[string]string{member: outside, "command": "x", "content": ""})
			require.NoError(t, err)
			require.ErrorContains(t, checkPaths(w, d.Method, backend.Raw(params)), "outside", "%s of %s", member, d.Method)
		}
	}
	slices.Sort(paths)
	require.Equal(t, []string{"fs/read_text_file path", "fs/write_text_file path", "terminal/create cwd"}, paths)
}
