package servers_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/servers"
	"github.com/acp-agent/acp-agent/acp/mcp"
	"github.com/acp-agent/acp-agent/internal/mcp/mcpclient"
	"github.com/acp-agent/acp-agent/internal/permission"
	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/logtest"
	"github.com/acp-agent/acp-agent/internal/test/mcptest"
	"github.com/acp-agent/acp-agent/internal/test/proctest"
	"github.com/acp-agent/acp-agent/internal/test/roottest"
	"github.com/acp-agent/acp-agent/internal/test/volume"
	"github.com/acp-agent/acp-agent/workspace"
)

func TestMain(m *testing.M) { proctest.Main(m, runRole) }

// patience bounds waits for what must happen.
const patience = volume.Patience

// host is a session that answers permission requests and collects updates.
type host struct {
	backend.Host
	mu      sync.Mutex
	answer  string // an option's id, "cancelled", or "" for allow-once
	asked   []json.RawMessage
	actions []permission.Action // of the questions
	updates logtest.Text
	during  func() // runs while the user is asked

	workspace *workspace.Workspace

	elicited string   // the answer to elicitation/create
	told     []string // notifications
}

func (h *host) Ask(ctx context.Context, q backend.Question) (backend.Answer, error) {
	h.mu.Lock()
	h.actions = append(h.actions, q.Action.(permission.Action))
	h.mu.Unlock()
	return q.Ask(ctx, h)
}

func (h *host) Workspace() *workspace.Workspace { return h.workspace }

func (h *host) Call(ctx context.Context, method string, params backend.Raw) backend.Work {
	return func() (backend.Raw, error) {
		h.mu.Lock()
		h.asked = append(h.asked, params)
		answer, during, elicited := h.answer, h.during, h.elicited
		h.mu.Unlock()
		if during != nil {
			during()
		}
		if method == "elicitation/create" {
			return backend.Raw(elicited), nil
		}
		switch answer {
		case "cancelled":
			return backend.Raw(`{"outcome":{"outcome":"cancelled"}}`), nil
		case "":
			answer = "allow-once"
		}
		return backend.Raw(fmt.Sprintf(`{"outcome":{"outcome":"selected","optionId":%q}}`, answer)), nil
	}
}

func (h *host) Notify(_ context.Context, method string, params backend.Raw) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.told = append(h.told, method+" "+string(params))
	return nil
}

func (h *host) notifications() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.told)
}

// lastAsked returns the params of the last request to the client.
func (h *host) lastAsked() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return string(h.asked[len(h.asked)-1])
}

func (h *host) Update(_ context.Context, u backend.Update) error {
	_, err := fmt.Fprintln(&h.updates, u)
	return err
}

func (h *host) Commit(ctx context.Context, u backend.Update) error { return h.Update(ctx, u) }

func (h *host) questions() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.asked)
}

// fixture is a set and its host.
type fixture struct {
	*servers.Set
	t    testing.TB
	host *host
	logs *logtest.Text
}

// newFixture returns a set that is closed at the end of the test. If there are configs, it has these
// servers for an empty folder.
func newFixture(t testing.TB, o mcpclient.Options, configs ...mcpclient.Config) *fixture {
	t.Helper()
	f := newFixtureWith(t, make(chan struct{}, 8), o)
	if configs != nil {
		f.change(roottest.Open(t, folder(t)), configs...)
	}
	return f
}

func newFixtureWith(t testing.TB, starting chan struct{}, o mcpclient.Options) *fixture {
	t.Helper()
	f := &fixture{t: t, host: &host{}, logs: &logtest.Text{}}
	o.Logger, o.Wait = f.logs.Logger(slog.LevelDebug), cmp.Or(o.Wait, patience)
	f.Set = servers.NewSet(starting, o)
	t.Cleanup(func() { require.NoError(t, f.Close(context.Background())) })
	return f
}

// change prepares and commits a change.
func (f *fixture) change(w *workspace.Workspace, configs ...mcpclient.Config) {
	f.t.Helper()
	c, err := f.Prepare(w, configs)
	require.NoError(f.t, err)
	f.host.workspace = w
	f.Commit(c, f.host, nil)
}

// call calls a tool and returns the text of its result.
func (f *fixture) call(name, arguments string) string {
	f.t.Helper()
	text, err := f.try(name, arguments)
	require.NoError(f.t, err, "%s\n%s", name, f.logs)
	return text
}

func (f *fixture) try(name, arguments string) (string, error) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), patience)
	defer cancel()
	result, err := f.Call(ctx, f.host, backend.ToolRequest{Name: name, Arguments: backend.Raw(arguments)})
	text := textOf(result.Content)
	if err == nil && result.Failed {
		err = fmt.Errorf("the tool failed: %s", text)
	}
	return text, err
}

func textOf(blocks []backend.Raw) string {
	var texts []string
	for _, raw := range blocks {
		var block struct{ Text string }
		_ = json.Unmarshal(raw, &block)
		texts = append(texts, block.Text)
	}
	return strings.Join(texts, "\n")
}

// folder creates a directory with files, given as name and content in turn, and returns its real
// path.
var folder = dirtest.New

// runRole runs this binary as a server.
func runRole(role string) int {
	if proctest.Hold() != nil {
		return 1
	}
	switch role {
	case "sdk":
		return mcptest.PlayTools()
	case "conformance":
		if err := runConformanceClient(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		fmt.Print(finished)
		return 0
	default:
		return mcptest.PlayRaw(role)
	}
}

// npmServer returns a server from npm.
func npmServer(name string, command []string, args ...string) mcpclient.Config {
	return mcpclient.Config{
		Name: name, Transport: mcp.Stdio, Command: command[0], Args: append(command[1:], args...),
	}
}

// remote returns a server behind HTTP that requires a header, and its configuration.
func remote(t testing.TB, name string, kind mcp.Transport, handler http.Handler) mcpclient.Config {
	t.Helper()
	const key = "Bearer hunter2-secret"
	guarded := mcptest.Guard(t, "Authorization", key, handler)
	return mcpclient.Config{Name: name, Transport: kind, URL: guarded.URL + "/mcp",
		Headers: []mcpclient.Pair{{Name: "Authorization", Value: key}}}
}

var eras = []string{"2025-11-25", "2026-07-28"}
