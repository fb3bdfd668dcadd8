package serve

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/model"
	"github.com/acp-agent/acp-agent/internal/test/interop/modelserver"
	"github.com/acp-agent/acp-agent/internal/test/npmtest"
)

// Somebody starts a turn in an editor, leaves, is told that it asks something, allows it on a phone
// and sees the end of the turn in the editor, then follows and stops others. The walk through the
// page is testdata/node-browser/page.mjs. With ACP_AGENT_SCREENSHOTS=DIR it also takes pictures, of
// which docs/images has page-question and page-session. Clauses N8, S12.
func TestPageOnAPhone(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a browser")
	}
	npmtest.File(t, "testdata/node-browser", "@sparticuz/chromium/package.json")
	w := newWalk(t)
	w.leave()

	script := filepath.Join(filepath.Dir(npmtest.File(t, "testdata/node-browser", "")), "page.mjs")
	link := func(h *host, user string) string {
		return PairingLink("http://"+h.address, h.code(user, acp.RoleAnswer))
	}
	w.add("bob")
	elsewhere := start(t, withPage)
	elsewhere.add("ana")
	browser := exec.CommandContext(t.Context(), npmtest.Node(t), script, link(w.host, "ana"),
		link(w.host, "bob"), link(elsewhere, "ana"), os.Getenv("ACP_AGENT_SCREENSHOTS"))
	browser.Env = append(browser.Environ(), "HOME="+t.TempDir())
	in, err := browser.StdinPipe()
	require.NoError(t, err)
	out, err := browser.StdoutPipe()
	require.NoError(t, err)
	stderr := &strings.Builder{}
	browser.Stderr = stderr
	require.NoError(t, browser.Start())
	for lines := bufio.NewScanner(out); lines.Scan(); {
		what, _ := strings.CutPrefix(lines.Text(), "now: ")
		w.step(what)
		_, err := fmt.Fprintln(in)
		require.NoError(t, err)
	}
	require.NoError(t, browser.Wait(), "%s", stderr)
	w.cancel() // the question that the revoked device did not answer
	w.editor.lives()
}

// walk is what happens around a browser that shows the page.
type walk struct {
	*host
	cwd, secret string
	editor      *editor
	session     string
	told        string // the file with the last notification
	pass        func(time.Duration)
	files       []string    // that turns want to write
	ended       chan string // with the reason for which the last turn ended
}

func newWalk(t *testing.T) *walk {
	t.Helper()
	dir := t.TempDir()
	if os.Getenv("ACP_AGENT_SCREENSHOTS") != "" {
		dir = filepath.Join(os.TempDir(), "home", "ana")
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
	}
	w := &walk{cwd: filepath.Join(dir, "shop"), told: filepath.Join(t.TempDir(), "told"),
		files: []string{"a.md", "b.md", "c.md", "d.md"}}
	require.NoError(t, os.MkdirAll(w.cwd, 0o700))
	writer, err := modelserver.Start()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, writer.Close()) })
	models := []model.Model{{ID: "writer", BaseURL: writer.URL() + "/v1", Name: "writer"}}
	w.host = start(t, withPage, notifyTo(t, w.told), func(o *Options) {
		o.Serving = func(User) (acp.Options, error) {
			return acp.Options{Backend: func() backend.Backend {
				return failing{model.New(model.Options{Models: models})}
			}}, nil
		}
	})
	w.pass = w.clock()
	w.secret = w.add("ana", w.cwd)
	w.editor = connect(t, "ws://"+w.address, w.secret).initialize()
	var made struct{ SessionID string }
	require.NoError(t, json.Unmarshal(w.editor.open(w.cwd).Result, &made))
	w.session = made.SessionID
	require.Empty(t, w.editor.call("session/prompt", w.prompt("Where is the timeout?")).Error)
	return w
}

// failing is a backend whose turns fail, wait, ask or stream, if they are told to.
type failing struct{ backend.Backend }

func (f failing) Open(
	ctx context.Context, a backend.Activation, h backend.Host,
) (backend.Session, backend.Opened, error) {
	s, opened, err := f.Backend.Open(ctx, a, h)
	return failingSession{s, h}, opened, err
}

type failingSession struct {
	backend.Session
	host backend.Host
}

func (f failingSession) Prompt(
	ctx context.Context, params backend.Raw, u backend.Updates,
) backend.Work {
	if strings.Contains(string(params), "Fail.") {
		return func() (backend.Raw, error) { return nil, &backend.Error{Code: -32603, Message: "no such luck"} }
	}
	for said, act := range map[string]func(context.Context, backend.Updates) (backend.Raw, error){
		"Wait.": f.wait, "Ask.": f.ask, "Stream.": f.stream,
	} {
		if strings.Contains(string(params), said) {
			return func() (backend.Raw, error) { return act(ctx, u) }
		}
	}
	return f.Session.Prompt(ctx, params, u)
}

func (w *walk) prompt(text string) map[string]any {
	return map[string]any{"sessionId": w.session, "prompt": []any{map[string]string{"type": "text", "text": text}}}
}

// writing is a prompt to write the next file, which asks a question first.
func (w *walk) writing() map[string]any {
	name := w.files[0]
	w.files = w.files[1:]
	content := "# Timeouts\n" + strings.Repeat("- a service waits for 30 seconds\n", 40)
	return w.prompt(modelserver.Prompt("Write "+name+".", modelserver.Write(name, content)))
}

// leave starts a turn that asks a question, in an editor that is closed before it is answered. The
// user is told.
func (w *walk) leave() {
	w.t.Helper()
	line, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": "left", "method": "session/prompt", "params": w.writing()})
	require.NoError(w.t, err)
	w.editor.send(string(line))
	for asked := false; !asked; {
		line, err := w.editor.lines.ReadBytes('\n')
		require.NoError(w.t, err)
		asked = strings.Contains(string(line), "session/request_permission")
	}
	require.NoError(w.t, w.editor.in.Close())
	require.NoError(w.t, w.editor.end())
	w.pass(unattended)
	require.Eventually(w.t, func() bool {
		content, _ := os.ReadFile(w.told)
		return strings.Contains(string(content), `"event":"question"`)
	}, time.Minute, time.Millisecond)
}

// comeBack opens the session in an editor, which shows what was done on the phone.
func (w *walk) comeBack() {
	w.t.Helper()
	w.editor = connect(w.t, "ws://"+w.address, w.secret).initialize()
	_, err := fmt.Fprintf(w.editor.in, `{"jsonrpc":"2.0","id":"back","method":"session/load","params":{"sessionId":%q,"cwd":%q,"mcpServers":[]}}`+"\n", w.session, w.cwd)
	require.NoError(w.t, err)
	var shown strings.Builder
	for !strings.Contains(shown.String(), `"id":"back"`) {
		line, err := w.editor.lines.ReadString('\n')
		require.NoError(w.t, err)
		shown.WriteString(line)
	}
	require.Contains(w.t, shown.String(), `"status":"completed"`)
	require.NotContains(w.t, shown.String(), `"running":true`)
}

// cancel stops the turn in the editor.
func (w *walk) cancel() {
	w.t.Helper()
	_, err := fmt.Fprintf(w.editor.in, `{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":%q}}`+"\n", w.session)
	require.NoError(w.t, err)
	require.Contains(w.t, <-w.ended, "cancelled")
}

// step does what the browser asks for.
func (w *walk) step(what string) {
	t := w.t
	t.Helper()
	switch what {
	case "answered":
		require.Eventually(t, func() bool { return w.acp.Used().Turns == 0 }, time.Minute, time.Millisecond)
		require.FileExists(t, filepath.Join(w.cwd, "a.md"))
		list, err := w.options.Accounts.Tokens("ana")
		require.NoError(t, err)
		require.Regexp(t, `"answered a permission request","user":"ana","token":"`+list[len(list)-1].ID+
			`".*"answer":"allow_once","seconds":`, w.audit.String())
		w.comeBack()
	case "ask again":
		ended, params := make(chan string, 1), w.writing()
		w.ended = ended
		go func() {
			a := w.editor.call("session/prompt", params)
			ended <- string(a.Result) + a.Error.Message
		}()
	case "cancel":
		w.cancel()
	case "stopped":
		require.Contains(t, <-w.ended, "cancelled")
		require.NoFileExists(t, filepath.Join(w.cwd, "c.md"))
	case "fail":
		require.Contains(t, w.editor.call("session/prompt", w.prompt("Fail.")).Error.Message, "no such luck")
	case "restart":
		w.restart()
	case "pair another":
		_, err := w.options.Accounts.AddToken("ana", Token{Kind: Device, Role: acp.RoleWatch, Label: "tablet", Created: time.Now()})
		require.NoError(t, err)
	case "revoke":
		list, err := w.options.Accounts.Tokens("ana")
		require.NoError(t, err)
		for _, token := range list {
			if token.Kind == Device {
				require.NoError(t, w.options.Accounts.RevokeToken("ana", token.ID))
			}
		}
	}
}
