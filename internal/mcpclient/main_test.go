package mcpclient_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/mcpclient"
	"github.com/acp-agent/acp-agent/internal/testutil/dirtest"
	"github.com/acp-agent/acp-agent/internal/testutil/logtest"
	"github.com/acp-agent/acp-agent/internal/testutil/mcptest"
	"github.com/acp-agent/acp-agent/internal/testutil/proctest"
	"github.com/acp-agent/acp-agent/workspace"
)

func TestMain(m *testing.M) { proctest.Main(m, play) }

// patience bounds waits for what must happen.
const patience = 30 * time.Second

// self is a stdio server that this binary plays.
func self(name, r string, env ...string) mcpclient.Config {
	c := mcpclient.Config{Name: name, Transport: mcpclient.Stdio, Command: proctest.Executable()}
	for _, e := range proctest.Env(r, env...) {
		key, value, _ := strings.Cut(e, "=")
		c.Env = append(c.Env, mcpclient.Pair{Name: key, Value: value})
	}
	return c
}

// host plays the session: it answers questions for permission, and gathers updates.
type host struct {
	mu      sync.Mutex
	answer  string // an option's id, "cancelled", "unknown outcome", or "" for allow-once
	asked   []json.RawMessage
	updates []string
	changed chan struct{}
	during  func() // runs while the user is asked
}

func newHost() *host { return &host{changed: make(chan struct{})} }

func (h *host) Call(_ context.Context, method string, params backend.Raw) backend.Work {
	return func() (backend.Raw, error) {
		h.mu.Lock()
		h.asked = append(h.asked, params)
		answer, during := h.answer, h.during
		h.mu.Unlock()
		if during != nil {
			during()
		}
		switch answer {
		case "cancelled":
			return backend.Raw(`{"outcome":{"outcome":"cancelled"}}`), nil
		case "unknown outcome":
			return backend.Raw(`{"outcome":{"outcome":"deferred","optionId":"allow-once"}}`), nil
		case "":
			answer = "allow-once"
		}
		return backend.Raw(fmt.Sprintf(`{"outcome":{"outcome":"selected","optionId":%q}}`, answer)), nil
	}
}

func (h *host) Notify(context.Context, string, backend.Raw) error { return nil }

func (h *host) Update(_ context.Context, u backend.Update) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.updates = append(h.updates, string(u))
	close(h.changed)
	h.changed = make(chan struct{})
	return nil
}

func (h *host) questions() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.asked)
}

func (h *host) all() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Join(h.updates, "\n")
}

// saw waits for an update that holds text.
func (h *host) saw(t testing.TB, text string) {
	t.Helper()
	deadline := time.After(patience)
	for {
		h.mu.Lock()
		seen, changed := strings.Contains(strings.Join(h.updates, "\n"), text), h.changed
		h.mu.Unlock()
		if seen {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			t.Fatalf("never shown: %q in\n%s", text, h.all())
		}
	}
}

// fixture is a set with a host, for one test.
type fixture struct {
	*mcpclient.Set
	t    testing.TB
	host *host
	logs *logtest.Text
}

// with makes a set; it is closed with the test.
func with(t testing.TB, o mcpclient.Options) *fixture {
	t.Helper()
	return withStarter(t, mcpclient.NewStarter(mcpclient.StarterOptions{}), o)
}

func withStarter(t testing.TB, starter *mcpclient.Starter, o mcpclient.Options) *fixture {
	t.Helper()
	f := &fixture{t: t, host: newHost(), logs: &logtest.Text{}}
	o.Logger = f.logs.Logger(slog.LevelDebug)
	if o.Backoff == 0 {
		o.Backoff = 10 * time.Millisecond
	}
	f.Set = mcpclient.NewSet(starter, o)
	t.Cleanup(func() { require.NoError(t, f.Close(context.Background())) })
	return f
}

// open opens a workspace, closed with the test.
func open(t testing.TB, cwd string, additional ...string) *workspace.Workspace {
	t.Helper()
	roots, err := workspace.NewRoots(cwd, additional)
	require.NoError(t, err)
	w, err := workspace.Open(t.Context(), roots, workspace.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = w.Close() })
	return w
}

// change prepares and commits.
func (f *fixture) change(w *workspace.Workspace, configs ...mcpclient.Config) {
	f.t.Helper()
	c, err := f.Prepare(w, configs)
	require.NoError(f.t, err)
	c.Commit(f.host)
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
	result, err := f.Call(ctx, f.host, name, backend.Raw(arguments))
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

// folder makes a directory with files, and returns its real path. files are name and content, in turn.
func folder(t testing.TB, files ...string) string {
	t.Helper()
	return dirtest.New(t, files...)
}

// uris are directories as the URIs of roots, a line each.
func uris(t testing.TB, dirs ...string) string {
	t.Helper()
	return strings.Join(mcptest.URIs(t, dirs...), "\n")
}

// state waits until the first server is in a state.
func (f *fixture) state(state backend.ServerState) backend.ServerStatus {
	f.t.Helper()
	var status backend.ServerStatus
	require.Eventually(f.t, func() bool {
		status = f.Servers()[0]
		return status.State == state
	}, patience, 5*time.Millisecond, "never %s: %v\n%s", state, status, f.logs)
	return status
}
