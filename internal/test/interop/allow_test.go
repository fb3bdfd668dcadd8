package interop

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// The agent may read in the session's folders without a question if a flag, a file or the
// configuration says so.
//
// Clause A30.
func TestAllowRead(t *testing.T) {
	cwd, lib, outside := folder(t), folder(t, "b.txt", "b"), folder(t, "c.txt", "c")
	config := file(t, "config.json", `{"permissions":{"allow":["read"]}}`)
	only, none := file(t, "only.json", "{\"allow\": [\"read\"], // comments\n}"), file(t, "none.json", `{}`)
	request := func(kind, path string) string {
		return `ask session/request_permission {"toolCall":{"toolCallId":"t","title":"Look","kind":"` + kind + `","locations":[{"path":` + quoted(path) + `}]},` +
			`"options":[{"optionId":"yes","kind":"allow_once","name":"Yes"},{"optionId":"no","kind":"reject_once","name":"No"}]}`
	}
	inside := filepath.Join(lib, "b.txt")
	for name, c := range map[string]struct {
		args    []string
		allowed bool
	}{
		"by default":                {nil, false},
		"flag":                      {[]string{"--allow", "read"}, true},
		"configuration":             {[]string{"--config", config}, true},
		"another file":              {[]string{"--permissions", only}, true},
		"no rules but those of one": {[]string{"--config", config, "--permissions", none}, false},
	} {
		t.Run(name, func(t *testing.T) {
			a := start(t, append(c.args, behind()...)...).initialize()
			id := a.open(cwd, lib)
			turn := a.ask(id, request("read", inside), "reject_once")
			if c.allowed {
				require.Empty(t, turn.questions)
				require.Contains(t, turn.updates, "Look (allowed by the rule `read`)")
			} else {
				require.Len(t, turn.questions, 1)
				require.NotContains(t, turn.updates, "allowed by")
			}
			require.Len(t, a.ask(id, request("read", filepath.Join(outside, "c.txt")), "reject_once").questions, 1)
			require.Len(t, a.ask(id, request("edit", inside), "reject_once").questions, 1)
		})
	}
}
