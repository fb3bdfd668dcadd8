package remote

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/npmtest"
)

// Somebody starts turns in an editor, and follows, answers and stops them on a phone. The walk through
// the page is testdata/node-browser/page.mjs. With ACP_AGENT_SCREENSHOTS=DIR it also takes pictures.
func TestPageOnAPhone(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a browser")
	}
	npmtest.File(t, "testdata/node-browser", "@sparticuz/chromium/package.json")
	script := filepath.Join(filepath.Dir(npmtest.File(t, "testdata/node-browser", "")), "page.mjs")
	h := start(t, withPage)
	cwd := t.TempDir()
	editor := connect(t, "ws://"+h.address, h.add("ana", cwd)).initialize()
	var made struct{ SessionID string }
	require.NoError(t, json.Unmarshal(editor.open(cwd).Result, &made))
	require.Empty(t, editor.call("session/prompt", map[string]any{"sessionId": made.SessionID,
		"prompt": []any{map[string]string{"type": "text", "text": "/roots"}}}).Error)

	walk := exec.CommandContext(t.Context(), npmtest.Node(t), script,
		PairingLink("http://"+h.address, h.code("ana", Answer)), os.Getenv("ACP_AGENT_SCREENSHOTS"))
	walk.Env = append(walk.Environ(), "HOME="+t.TempDir())
	in, err := walk.StdinPipe()
	require.NoError(t, err)
	out, err := walk.StdoutPipe()
	require.NoError(t, err)
	stderr := &strings.Builder{}
	walk.Stderr = stderr
	require.NoError(t, walk.Start())

	names := []string{"a.txt", "b.txt", "c.txt"}
	var ended chan string // with the reason for which the turn ended
	for lines := bufio.NewScanner(out); lines.Scan(); {
		what, _ := strings.CutPrefix(lines.Text(), "now: ")
		switch what {
		case "ask", "ask again":
			ended = make(chan string, 1)
			text := fmt.Sprintf("/write %s\n```\n%s\n```", names[0], strings.Repeat("a line\n", 40))
			names = names[1:]
			go func() {
				a := editor.call("session/prompt", map[string]any{"sessionId": made.SessionID,
					"prompt": []any{map[string]string{"type": "text", "text": text}}})
				ended <- string(a.Result) + a.Error.Message
			}()
		case "answered":
			require.Contains(t, <-ended, "end_turn")
			require.FileExists(t, filepath.Join(cwd, "a.txt"))
			list, err := h.options.Tokens.Of("ana")
			require.NoError(t, err)
			require.Regexp(t, `"answered a permission request","user":"ana","token":"`+list[len(list)-1].ID+
				`".*"answer":"allow_once","seconds":`, h.audit.String())
		case "cancel":
			_, err := fmt.Fprintf(editor.in, `{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":%q}}`+"\n", made.SessionID)
			require.NoError(t, err)
			require.Contains(t, <-ended, "cancelled")
		case "stopped":
			require.Contains(t, <-ended, "cancelled")
			require.NoFileExists(t, filepath.Join(cwd, "c.txt"))
		case "cut":
			h.cutDevices()
		case "revoke":
			list, err := h.options.Tokens.Of("ana")
			require.NoError(t, err)
			for _, token := range list {
				if token.Kind == Device {
					require.NoError(t, h.options.Tokens.RevokeToken("ana", token.ID))
				}
			}
		}
		_, err := fmt.Fprintln(in)
		require.NoError(t, err)
	}
	require.NoError(t, walk.Wait(), "%s", stderr)
	editor.lives()
}

// cutDevices ends the connections of devices.
func (h *host) cutDevices() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.conns {
		if c.token.Kind == Device {
			c.end()
		}
	}
}
