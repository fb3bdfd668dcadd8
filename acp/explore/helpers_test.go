package explore

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/discovery"
	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/roottest"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/workspace"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fileTree is the files of a test by their slash-separated paths.
type fileTree = dirtest.Tree

// plant writes files into a new directory, and returns it with its links resolved.
func plant(t testing.TB, files fileTree) string {
	t.Helper()
	return files.Plant(t)
}

// client is the client of a test.
type client struct {
	backend.Host // for the methods that the explorer does not call
	workspace    *workspace.Workspace
	catalog      *discovery.Catalog
	tools        backend.Tools

	mu      sync.Mutex
	updates []update
	// onUpdate, if not nil, is called with each update.
	onUpdate func(update) error
	// committed are the status of the updates that are stored before they are sent.
}

// update is an update as a client reads it.
type update struct {
	Kind     string             `json:"sessionUpdate"`
	ID       string             `json:"toolCallId"`
	Title    string             `json:"title"`
	Tool     sdk.ToolKind       `json:"kind"`
	Status   sdk.ToolCallStatus `json:"status"`
	RawInput map[string]any     `json:"rawInput"`
	Places   []location         `json:"locations"`
	Content  json.RawMessage    `json:"content"`
	Commands []map[string]any   `json:"availableCommands"`
}

// location is a location of a tool call as a client reads it.
type location struct {
	Path string
	Line int
}

// text returns the text of a chunk, or of the first content of a tool call.
func (u update) text() string {
	var one struct {
		Text    string
		Content struct{ Text string }
	}
	raw := bytes.TrimSuffix(bytes.TrimPrefix(u.Content, []byte("[")), []byte("]"))
	if len(raw) == 0 || json.Unmarshal(raw, &one) != nil {
		return ""
	}
	return one.Text + one.Content.Text
}

func (c *client) Workspace() *workspace.Workspace { return c.workspace }
func (c *client) Catalog() *discovery.Catalog     { return c.catalog }
func (c *client) Tools() backend.Tools            { return c.tools }

func (c *client) Update(ctx context.Context, u backend.Update) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	var params struct{ Update update }
	if err := json.Unmarshal(u.Raw, &params); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.updates = append(c.updates, params.Update)
	if c.onUpdate != nil {
		return c.onUpdate(params.Update)
	}
	return nil
}

func (c *client) Commit(ctx context.Context, u backend.Update) error { return c.Update(ctx, u) }

// conversation is an open session.
type conversation struct {
	t       testing.TB
	client  *client
	session backend.Session
}

// open starts a session on roots, cwd first.
func open(t testing.TB, roots ...string) *conversation {
	t.Helper()
	ws := roottest.Open(t, roots[0], roots[1:]...)

	catalog, err := discovery.Scan(t.Context(), ws)
	require.NoError(t, err)
	c := &client{workspace: ws, catalog: catalog, tools: &fakeTools{}}
	r := New()
	_, err = r.Initialize(t.Context(), backend.Raw(`{}`), c)
	require.NoError(t, err)
	session, _, err := r.Open(t.Context(), backend.Activation{Cause: backend.New}, c)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, session.Close(context.Background()))
		require.NoError(t, r.Close(context.Background()))
	})
	return &conversation{t, c, session}
}

// answer is a turn as the client saw it.
type answer struct {
	updates []update
	stop    string
}

// ask prompts with text, and with links if there are any.
func (c *conversation) ask(text string, links ...string) answer {
	c.t.Helper()
	return c.prompt(c.t.Context(), blocks(text, links...))
}

func blocks(text string, links ...string) []map[string]any {
	var list []map[string]any
	if text != "" {
		list = append(list, map[string]any{"type": "text", "text": text})
	}
	for _, uri := range links {
		list = append(list, map[string]any{"type": "resource_link", "name": "link", "uri": uri})
	}
	return list
}

func (c *conversation) prompt(ctx context.Context, blocks []map[string]any) answer {
	c.t.Helper()
	c.client.mu.Lock()
	c.client.updates = nil
	c.client.mu.Unlock()
	params, err := json.Marshal(map[string]any{"prompt": blocks})
	require.NoError(c.t, err)
	result, err := c.session.Prompt(ctx, params, c.client)()
	require.NoError(c.t, err)
	var response struct{ StopReason string }
	require.NoError(c.t, json.Unmarshal(result, &response))
	return answer{c.client.updates, response.StopReason}
}

// text returns all text of the answer.
func (a answer) text() string {
	var b strings.Builder
	for _, u := range a.updates {
		if u.Kind == "agent_message_chunk" {
			b.WriteString(u.text())
		}
	}
	return b.String()
}

// lines returns the lines in code blocks.
func (a answer) lines() []string {
	var found []string
	inside := false
	for line := range strings.Lines(a.text()) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "```") {
			inside = !inside
			continue
		}
		if inside {
			found = append(found, line)
		}
	}
	return found
}

// call returns the only tool call, as it ended.
func (a answer) call(t testing.TB) update {
	t.Helper()
	var begun, ended []update
	for _, u := range a.updates {
		switch u.Kind {
		case "tool_call":
			begun = append(begun, u)
		case "tool_call_update":
			ended = append(ended, u)
		}
	}
	require.Len(t, begun, 1)
	require.Len(t, ended, 1)
	require.Equal(t, sdk.ToolCallStatusInProgress, begun[0].Status)
	require.Equal(t, begun[0].ID, ended[0].ID)
	whole := begun[0]
	whole.Status, whole.Places, whole.Content = ended[0].Status, ended[0].Places, ended[0].Content
	return whole
}

// example copies the workspace under testdata and returns its roots.
func example(t testing.TB) (app, shared, skills string) {
	t.Helper()
	top := dirtest.New(t)
	require.NoError(t, os.CopyFS(top, os.DirFS(filepath.Join("..", "..", "testdata", "workspace"))))
	return filepath.Join(top, "app"), filepath.Join(top, "shared"), filepath.Join(top, "skills")
}

// Call implements [backend.Client].
func (c *client) Call(_ context.Context, method string, _ backend.Raw) backend.Work {
	return func() (backend.Raw, error) {
		return nil, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "there is no %s", method)
	}
}
