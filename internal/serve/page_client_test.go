package serve

import (
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

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/test/npmtest"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// Somebody who may do everything reads, sends, stops and answers on the page. What is done there is
// in testdata/node-browser/client.mjs. Clauses N8, S12.
func TestPageInABrowser(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a browser")
	}
	npmtest.File(t, "testdata/node-browser", "@sparticuz/chromium/package.json")
	script := filepath.Join(filepath.Dir(npmtest.File(t, "testdata/node-browser", "")), "client.mjs")
	w := newWalk(t)
	w.keep()
	// The session that asks is the first of many that are open.
	for range 24 {
		w.editor.open(w.cwd)
	}
	w.files = []string{"asked.md", "stopped.md"}
	line, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": "asks", "method": "session/prompt", "params": w.writing()})
	require.NoError(t, err)
	w.editor.send(string(line))
	w.add("eve", w.cwd)
	asks := w.writing()["prompt"].([]any)[0].(map[string]string)["text"]
	browser := exec.CommandContext(t.Context(), npmtest.Node(t), script,
		PairingLink("http://"+w.address, w.code("ana", Full)), PairingLink("http://"+w.address, w.code("eve", Full)), asks,
		PairingLink("http://"+w.address, w.code("ana", Full)))
	browser.Env = append(browser.Environ(), "HOME="+t.TempDir())
	out, err := browser.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// keep stores sessions that nobody has opened here: one with all that a conversation has, and many.
func (w *walk) keep() {
	w.t.Helper()
	store := w.options.Store.For("ana")
	shared := filepath.Join(w.cwd, "shared")
	require.NoError(w.t, os.Mkdir(shared, 0o700))
	roots, err := workspace.NewRoots(w.cwd, []string{shared})
	require.NoError(w.t, err)
	roots = roots.ReadOnlyAt([]string{shared})
	keys := sessionstore.Keys{Roots: roots, Real: []workspace.Dir{workspace.Real(roots.Cwd()), workspace.Real(roots.Additional().At(0))}}
	agent := sessionstore.Agent{Kind: "model"}
	var old []sessionstore.Session
	for i := range 90 {
		old = append(old, sessionstore.Session{ID: sessionstore.ID(fmt.Sprint("old", i)), StateKey: fmt.Sprint(i), Keys: keys,
			Title: fmt.Sprint("Session ", i), Updated: time.Now().Add(-time.Duration(i) * time.Hour)})
	}
	_, err = store.Import(w.t.Context(), agent, old, false)
	require.NoError(w.t, err)
	lease, err := store.Create(w.t.Context(), sessionstore.Session{ID: "rich", Agent: agent, Keys: keys})
	require.NoError(w.t, err)
	number, err := store.BeginTurn(w.t.Context(), lease, sessionstore.Turn{Title: "Rich", Prompt: said(w.t, "user_message_chunk", "Show all")})
	require.NoError(w.t, err)
	answer := "# Title\n\n**strong** and ~~struck~~\n\n- one\n  - two\n- [x] done\n\n3. three\n4. four\n\n| a | b |\n|---|--:|\n| c | 1 |\n\n```go\nx := 1\n```\n"
	updates := append(said(w.t, "agent_message_chunk", answer), parsed(w.t, `{"sessionUpdate":"tool_call","toolCallId":"1","title":"Edit a.go",`+
		`"status":"completed","content":[{"type":"diff","path":"/a.go","oldText":"a\n","newText":"a\nb\n"}]}`))
	require.NoError(w.t, store.Append(w.t.Context(), lease, updates))
	require.NoError(w.t, store.EndTurn(w.t.Context(), lease, number))
}

func parsed(t *testing.T, update string) sessionstore.Update {
	t.Helper()
	u, err := sessionstore.ParseUpdate([]byte(`{"update":` + update + `}`))
	require.NoError(t, err)
	return u
}

func said(t *testing.T, kind, text string) []sessionstore.Update {
	t.Helper()
	quoted, err := json.Marshal(text)
	require.NoError(t, err)
	return []sessionstore.Update{parsed(t, `{"sessionUpdate":"`+kind+`","content":{"type":"text","text":`+string(quoted)+`}}`)}
}

// show shows an update.
func show(ctx context.Context, to backend.Updates, update string) error {
	u, err := sessionstore.ParseUpdate([]byte(`{"update":` + update + `}`))
	if err != nil {
		return err
	}
	return to.Update(ctx, u)
}

// wait calls a tool and goes on until it is told to end.
func (f failingSession) wait(ctx context.Context, u backend.Updates) (backend.Raw, error) {
	err := show(ctx, u, `{"sessionUpdate":"tool_call","toolCallId":"r","title":"Read main.go","status":"in_progress"}`)
	if err == nil {
		<-ctx.Done()
	}
	return backend.Raw(`{"stopReason":"cancelled"}`), err
}

// ask announces a tool call and asks about it without saying again what it is, as many agents do.
func (f failingSession) ask(ctx context.Context, u backend.Updates) (backend.Raw, error) {
	err := show(ctx, u, `{"sessionUpdate":"tool_call","toolCallId":"e","title":"Edit b.go","kind":"edit",`+
		`"status":"pending","locations":[{"path":"/src/b.go"}],"rawInput":{"command":"go generate"},`+
		`"content":[{"type":"diff","path":"/src/b.go","oldText":"a\n","newText":"a\nnew line\n"}]}`)
	if err != nil {
		return nil, err
	}
	_, err = f.host.Call(ctx, "session/request_permission", backend.Raw(`{"toolCall":{"toolCallId":"e"},`+
		`"options":[{"optionId":"y","kind":"allow_once","name":"Yes"},{"optionId":"n","kind":"reject_once","name":"No"}]}`))()
	return backend.Raw(`{"stopReason":"end_turn"}`), err
}

// stream says 100 paragraphs in 500 pieces, and calls a tool now and then, so that it is shown in
// several parts.
func (f failingSession) stream(ctx context.Context, u backend.Updates) (backend.Raw, error) {
	goesOn := " goes on" + strings.Repeat(" and on", 150) + ","
	for i := range 500 {
		if i%130 == 0 {
			call := fmt.Sprintf(`{"sessionUpdate":"tool_call","toolCallId":"s%d","title":"Look","status":"completed"}`, i)
			if err := show(ctx, u, call); err != nil {
				return nil, err
			}
		}
		piece := []string{fmt.Sprintf("Paragraph %d", i/5), " begins,", goesOn, goesOn, ` ends.\n\n`}[i%5]
		if err := show(ctx, u, `{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"`+piece+`"}}`); err != nil {
			return nil, err
		}
		time.Sleep(4 * time.Millisecond) // slower than the page looks for news
	}
	return backend.Raw(`{"stopReason":"end_turn"}`), nil
}
