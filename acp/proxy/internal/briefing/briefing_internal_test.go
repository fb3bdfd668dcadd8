package briefing

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestChanges(t *testing.T) {
	part := func(text string) []Part { return []Part{newPart(text, "changed: ", "gone")} }
	sent := func(text string) Sent { return Sent{Roots: part(text)[0].digest} }
	for name, c := range map[string]struct{ sent, now, byServer, told string }{
		"nothing":           {"", "", "", ""},
		"first":             {"", "a", "", "a"},
		"the same":          {"a", "a", "", ""},
		"changed":           {"a", "b", "", "changed: b"},
		"gone":              {"a", "", "", "gone"},
		"by the server":     {"", "a", "a", ""},
		"changed since":     {"", "b", "a", "changed: b"},
		"gone since":        {"", "", "a", "gone"},
		"a prompt is newer": {"b", "b", "a", ""},
	} {
		var told []Part
		if c.byServer != "" {
			told = part(c.byServer)
		}
		texts, after := sent(c.sent).Changes(part(c.now), told)
		require.Equal(t, c.told, strings.Join(texts, ""), name)
		if c.byServer == "" || c.told != "" {
			require.Equal(t, sent(c.now), after, name)
		}
	}
}
