package mcpclient_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	acpmcp "github.com/acp-agent/acp-agent/acp/mcp"
	"github.com/acp-agent/acp-agent/internal/mcp/mcpclient"
	"github.com/acp-agent/acp-agent/internal/test/mcptest"
	"github.com/acp-agent/acp-agent/internal/test/proctest"
	"github.com/acp-agent/acp-agent/internal/test/roottest"
)

// location is the result of the tool where.
type location struct {
	Cwd   string
	PID   int
	Args  []string
	Roots string
}

func (f *fixture) where(server string) location {
	f.t.Helper()
	var p location
	require.NoError(f.t, json.Unmarshal([]byte(f.call(server+".where", `{}`)), &p))
	return p
}

var eras = []string{"2025-11-25", "2026-07-28"}

// Clauses M1, M7.
func TestRootsInOrder(t *testing.T) {
	for _, revision := range append(eras, "2025-06-18", "2024-11-05") {
		t.Run(revision, func(t *testing.T) {
			top := folder(t, "z 100%/f", "", "a#1/f", "", "m/f", "")
			z, a, m := filepath.Join(top, "z 100%"), filepath.Join(top, "a#1"), filepath.Join(top, "m")
			one, two := newFixture(t, mcpclient.Options{}), newFixture(t, mcpclient.Options{})
			server := mcptest.Self("s", "sdk", "REVISION="+revision)
			one.change(roottest.Open(t, z, a, m), server)
			two.change(roottest.Open(t, m, z), server)
			require.Equal(t, uris(t, z, a, m), one.call("s.roots", ""))
			require.Equal(t, uris(t, m, z), two.call("s.roots", ""))
			status := one.Servers()[0]
			require.Equal(t, revision, status.Revision)
			require.Equal(t, strings.Split(uris(t, z, a, m), "\n"), status.SentRoots)
		})
	}
}

// Clause M4.
func TestFailedServer(t *testing.T) {
	f := newFixture(t, oneTry)
	f.change(roottest.Open(t, folder(t)),
		mcpclient.Config{Name: "missing", Transport: acpmcp.Stdio, Command: "no-such-command-anywhere"},
		mcptest.Self("exit", "exit", "TOKEN=hunter2-secret"), mcptest.Self("good", "sdk"),
		mcpclient.Config{Name: "refused", Transport: acpmcp.HTTP, URL: "http://127.0.0.1:1/mcp"})
	tools, err := mcptest.ListTools(t.Context(), f)
	require.NoError(t, err)
	require.NotEmpty(t, tools)
	for _, tool := range tools {
		require.Equal(t, "good", tool.Server)
	}
	status := f.Servers()
	require.Equal(t, acpmcp.Failed, status[0].State)
	require.ErrorContains(t, status[0].Err, "no-such-command-anywhere")
	require.ErrorContains(t, status[0].Err, "PATH")
	require.ErrorContains(t, status[1].Err, "exit status 3")
	require.ErrorContains(t, status[1].Err, "no licence found")
	require.NotContains(t, status[1].Err.Error(), "hunter2")
	require.NotContains(t, f.logs.String(), "hunter2")
	require.Error(t, status[3].Err)
}

// Clause M4.
func TestSlowServer(t *testing.T) {
	f := serving(t, mcpclient.Options{Wait: 50 * time.Millisecond}, mcptest.Self("silent", "silent"))
	tools, err := mcptest.ListTools(t.Context(), f)
	require.NoError(t, err)
	require.Empty(t, tools)
	require.Equal(t, acpmcp.Starting, f.Servers()[0].State)
	_, err = f.try("silent.x", "")
	require.ErrorContains(t, err, "MCP server silent has not become ready within 50ms: it has not answered yet")
}

// Clause M5.
func TestFirstCallWaits(t *testing.T) {
	f := newFixture(t, mcpclient.Options{})
	c := mcptest.Self("s", "sdk", "ASK=1", "REVISION=2025-11-25")
	c.Policy.SettleWithoutRoots = patience // only an answered roots/list makes it ready
	f.change(roottest.Open(t, folder(t)), c)
	f.call("s.echo", "{}")
	require.NotNil(t, f.Servers()[0].SentRoots)

	never := newFixture(t, mcpclient.Options{}.With(mcpclient.Limits{SettleMax: 10 * time.Millisecond}))
	c = mcptest.Self("s", "sdk", "REVISION=2025-11-25")
	c.Policy.SettleWithoutRoots = 10 * time.Millisecond
	never.change(roottest.Open(t, folder(t)), c)
	never.call("s.echo", "{}")
	require.Nil(t, never.Servers()[0].SentRoots)
}

// Clause M2.
func TestRootsOff(t *testing.T) {
	for revision, says := range map[string]string{eras[0]: "method not found",
		eras[1]: "asked for roots/list, which this client does not offer"} {
		off := mcptest.Self("off", "sdk", "REVISION="+revision)
		off.Policy.Roots = new(false)
		f := serving(t, mcpclient.Options{}, off)
		_, err := f.try("off.roots", "")
		require.ErrorContains(t, err, says)
		require.False(t, f.Servers()[0].RootsDeclared)
		require.Nil(t, f.Servers()[0].SentRoots)
	}
}

// Clause M14.
func TestTemplates(t *testing.T) {
	cwd, second := folder(t), folder(t)
	c := mcptest.Self("s", "sdk", "ROOTS=${roots}|${roots:uris}|${HOME}")
	c.Args = []string{"--at=${cwd}", "${roots}", "${root:1}", "${roots:json}", "${root:x}"}
	f := newFixture(t, mcpclient.Options{})
	f.change(roottest.Open(t, cwd, second), c)
	require.Equal(t, c.Args, f.where("s").Args, "off by default")

	c.Policy.Templates = true
	templated := c
	templated.Env = slices.Clone(c.Env)
	f.change(roottest.Open(t, cwd, second), c)
	p := f.where("s")
	paths, err := json.Marshal([]string{cwd, second})
	require.NoError(t, err)
	require.Equal(t, []string{"--at=" + cwd, cwd, second, second, string(paths), "${root:x}"}, p.Args)
	require.Equal(t, cwd+string(os.PathListSeparator)+second+"|"+`["`+strings.ReplaceAll(uris(t, cwd, second), "\n", `","`)+`"]|${HOME}`, p.Roots)

	f.change(roottest.Open(t, cwd), c)
	_, err = f.try("s.where", "")
	require.ErrorContains(t, err, "MCP server s: argument 3: ${root:1}: no such root: the session has 1 root, counted from 0")
	c.Args, c.Env[0] = nil, mcpclient.Pair{Name: "ROOTS", Value: "${root:7}"}
	f.change(roottest.Open(t, cwd), c)
	_, err = f.try("s.where", "")
	require.ErrorContains(t, err, "MCP server s: variable ROOTS: ${root:7}: no such root")
	c = templated
	f.change(roottest.Open(t, cwd), c)
	f.change(roottest.Open(t, cwd, second), c)
	require.Eventually(t, func() bool { _, err := f.try("s.where", ""); return err == nil }, patience, 20*time.Millisecond)
}

// Clause M15.
func TestCompleteList(t *testing.T) {
	w := roottest.Open(t, folder(t))
	f := newFixture(t, mcpclient.Options{})
	f.change(w, mcptest.Self("stays", "sdk"), mcptest.Self("goes", "sdk"), mcptest.Self("changes", "sdk"))
	stays, goes, changes := f.where("stays"), f.where("goes"), f.where("changes")

	_, err := f.Prepare(w, make([]mcpclient.Config, 65))
	var many *mcpclient.TooManyError
	require.ErrorAs(t, err, &many)
	dropped, err := f.Prepare(w, nil)
	require.NoError(t, err)
	require.NotNil(t, dropped)
	require.Equal(t, goes.PID, f.where("goes").PID, "a change that is not committed changes nothing")

	f.change(w, mcptest.Self("new", "sdk"), mcptest.Self("changes", "sdk", "A=b"), mcptest.Self("stays", "sdk"))
	require.Equal(t, stays.PID, f.where("stays").PID)
	require.NotEqual(t, changes.PID, f.where("changes").PID)
	require.NotZero(t, f.where("new").PID)
	_, err = f.try("goes.where", "")
	var unknown *acpmcp.UnknownNameError
	require.ErrorAs(t, err, &unknown)
	require.Eventually(t, func() bool { return ended(goes.PID) }, patience, 5*time.Millisecond)

	f.change(w)
	require.Empty(t, f.Servers())
	require.Eventually(t, func() bool { return ended(stays.PID) }, patience, 5*time.Millisecond)
}

func TestClosedSet(t *testing.T) {
	f := newFixture(t, mcpclient.Options{})
	w := roottest.Open(t, folder(t))
	f.change(w, mcptest.Self("s", "sdk"))
	pid := f.where("s").PID
	change, err := f.Prepare(w, nil)
	require.NoError(t, err)
	require.NoError(t, f.Close(t.Context()))
	require.True(t, ended(pid))
	change.Commit(f.host)
	require.Equal(t, acpmcp.Stopped, f.Servers()[0].State)
	_, err = mcptest.ListTools(t.Context(), f)
	require.ErrorIs(t, err, acpmcp.ErrClosed)
	_, err = f.try("s.where", "")
	require.ErrorIs(t, err, acpmcp.ErrClosed)
	_, err = f.Prepare(w, nil)
	require.ErrorIs(t, err, acpmcp.ErrClosed)
	require.NoError(t, f.Close(t.Context()))
}

func TestResources(t *testing.T) {
	f := serving(t, mcpclient.Options{}, mcptest.Self("one", "sdk"))
	listings, err := f.List(t.Context())
	require.NoError(t, err)
	listing := <-listings
	require.Len(t, listing.Resources, 1)
	require.Equal(t, "mem://a", listing.Resources[0].URI)
	require.NoError(t, listing.Err)
	require.Equal(t, "Call roots.", listing.Instructions)
	content, err := f.ReadResource(t.Context(), "one", "mem://a")
	require.NoError(t, err)
	require.Len(t, content.Contents, 1)
	require.Equal(t, "the content", content.Contents[0].Text)
	_, err = f.ReadResource(t.Context(), "one", "mem://b")
	require.ErrorContains(t, err, "MCP server one: ")
}

func TestPrompts(t *testing.T) {
	f := serving(t, mcpclient.Options{}, mcptest.Self("my server", "sdk"))
	require.Nil(t, f.Servers()[0].Prompts, "nothing is started to know them")
	for _, name := range []string{"my_server:greet", "my server:greet"} {
		r, err := f.GetPrompt(t.Context(), name, "Ada")
		require.NoError(t, err)
		require.Equal(t, "Greet Ada.", r.Messages[0].Content.(*mcp.TextContent).Text)
	}
	known := f.Servers()[0].Prompts
	require.Len(t, known, 1)
	require.Equal(t, "my_server:greet", known[0].Name)
	for _, name := range []string{"my_server:other", "another:greet", "greet", ":"} {
		_, err := f.GetPrompt(t.Context(), name, "Ada")
		var unknown *acpmcp.UnknownNameError
		require.ErrorAs(t, err, &unknown, name)
		require.Equal(t, "prompt", unknown.Kind)
	}
}

// Clause M4.
func TestListSendsWhatIsKnown(t *testing.T) {
	f := serving(t, mcpclient.Options{Wait: patience}.With(mcpclient.Limits{MaxRestarts: 1, Backoff: time.Hour}), mcptest.Self("silent", "silent"), mcptest.Self("good", "sdk"), mcptest.Self("broken", "exit"))
	ctx, cancel := context.WithCancel(t.Context())
	listings, err := f.List(ctx)
	require.NoError(t, err)
	listing := <-listings // the silent server has not answered, and the broken one has another try
	require.Equal(t, "good", listing.Name)
	require.NotEmpty(t, listing.Tools)
	require.Equal(t, "it has not answered yet", f.Servers()[0].Waiting)
	require.Eventually(t, func() bool { return f.Servers()[2].State == acpmcp.Waiting }, patience, time.Millisecond)
	cancel()
	for listing := range listings {
		require.Error(t, listing.Err)
	}
}

func TestFewServersStartAtOnce(t *testing.T) {
	h := proctest.Watch(t)
	starting := make(chan struct{}, 2)
	ctx, cancel := context.WithCancel(t.Context())
	var listing sync.WaitGroup
	for range 3 {
		f := newFixtureWith(t, starting, mcpclient.Options{Wait: patience})
		f.change(roottest.Open(t, folder(t)), mcptest.Self("a", "silent", h.Env()), mcptest.Self("b", "silent", h.Env()))
		listing.Go(func() { _, _ = mcptest.ListTools(ctx, f) })
	}
	h.Next()
	h.Next()
	// Whoever else was started would be seen by the time another process has been.
	bystander := newFixture(t, mcpclient.Options{})
	bystander.change(roottest.Open(t, folder(t)), mcptest.Self("s", "sdk"))
	bystander.where("s")
	h.None()
	cancel()
	listing.Wait()
}

// Clause M4.
func TestCrashingServerIsNotWaitedFor(t *testing.T) {
	f := serving(t, mcpclient.Options{Wait: time.Hour}.With(mcpclient.Limits{Backoff: time.Millisecond, MaxRestarts: 100}), mcptest.Self("broken", "exit"))
	_, err := mcptest.ListTools(t.Context(), f)
	require.NoError(t, err)
	require.NotZero(t, f.Servers()[0].Restarts)
}
