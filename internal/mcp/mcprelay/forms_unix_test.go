//go:build unix

package mcprelay

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Deny rules hold in each form in which a call can come, and for what is no tool.
//
// Clause R5.
func TestRulesHoldForEachFormOfACall(t *testing.T) {
	top, err := os.MkdirTemp("", "r")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(top) })
	require.NoError(t, os.WriteFile(filepath.Join(top, ".env"), nil, 0o600))
	p, err := listen(top, slog.New(slog.DiscardHandler), time.Minute, time.Second)
	require.NoError(t, err)
	t.Cleanup(func() { _ = p.Close() })
	var deny []string
	p.SetAnswers(nil, func() (Rules, bool) { return Rules{Folders: []string{top}, Deny: deny}, true })
	s := newSides(t)
	s.Address, s.Secret, s.Server = p.Address(), p.Secret(), "files"
	s.server(`{"jsonrpc":"2.0","id":9,"result":{"tools":[{"name":"look","inputSchema":{},"annotations":{"readOnlyHint":true}},{"name":"twice","inputSchema":{}}]}}`)
	s.got()

	call := func(name string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + name + `","arguments":{}}}`
	}
	const (
		ping   = `{"jsonrpc":"2.0","id":2,"method":"ping"}`
		list   = `{"jsonrpc":"2.0","id":2,"method":"resources/list"}`
		answer = `{"jsonrpc":"2.0","id":2,"result":{"x":1}}`
		note   = `{"jsonrpc":"2.0","method":"notifications/progress","params":{"x":1}}`
		read   = `{"jsonrpc":"2.0","id":3,"method":"resources/read","params":{"uri":"repo://a"}}`
		secret = `{"jsonrpc":"2.0","id":3,"method":"resources/read","params":{"uri":"file://TOP/.env"}}`
		prompt = `{"jsonrpc":"2.0","id":4,"method":"prompts/get","params":{"name":"p","arguments":{"file":".env"}}}`
		value  = `{"jsonrpc":"2.0","id":4,"method":"completion/complete","params":{"ref":{"uri":"x"},"argument":{"value":".env"}}}`
	)
	unclear := []string{
		`{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call","params":{"name":"twice"}}`,
		`{"jsonrpc":"2.0","id":1,"Method":"tools/call","params":{"name":"twice"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"look","Name":"twice"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"look","name":"twice"}}`,
		`{"jsonrpc":"2.0","id":1,"result":{},"METHOD":"tools/call"}`, `{"id":1,`, `[` + call("look") + `,`, `[1]`, `{"id":1,"method":7}`,
	}
	for _, c := range []struct {
		deny            string
		refused, passed []string
	}{
		{"tool files.twice", append([]string{call("twice"), call("TWICE"), call(`tw\u0069ce`), "[" + ping + "," + call("twice") + "]", " [" + call("twice") + "]",
			strings.Replace(call("twice"), `"id":1,`, "", 1), strings.Replace(call("twice"), "tools/call", `tools\/call`, 1), call("twice")}, unclear...),
			[]string{call("look"), ping, list, answer, note, read, prompt, "[" + ping + "," + call("look") + "]", ""}},
		{"tool files.*", append([]string{call("look"), read, secret, prompt, value, "[" + ping + "," + read + "]"}, unclear...), []string{ping, list, answer, note}},
		{"tool files.* read-only", []string{call("look"), read, prompt, "[" + call("look") + "]"}, []string{call("twice"), call("new"), ping}},
		{"tool other.*", unclear, []string{call("look"), call("twice"), read, secret, prompt}},
		{"read **/.env", append([]string{secret, prompt, value, "[" + note + "," + secret + "]"}, unclear...), []string{read, call("look"), list}},
		{"", nil, append([]string{call("twice"), secret, "[" + call("twice") + "]"}, unclear...)},
	} {
		if deny = []string{c.deny}; c.deny == "" {
			deny = nil
		}
		for _, line := range c.refused {
			line = strings.ReplaceAll(line, "TOP", top)
			require.Empty(t, s.client(line), "%s: %s", c.deny, line)
			for len(s.relay.client.own) > 0 {
				require.NoError(t, s.relay.client.writeOwn(<-s.relay.client.own))
			}
			said := s.got()
			if m := parse([]byte(line)); m.method != "" && m.id != nil {
				require.Contains(t, said, "acp-agent refused the call", "%s: %s", c.deny, line)
			}
		}
		for _, line := range c.passed {
			line = strings.ReplaceAll(line, "TOP", top)
			require.Equal(t, line, s.client(line), c.deny)
			require.Empty(t, s.got())
		}
	}
}
