package mcpclient_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	acpmcp "github.com/acp-agent/acp-agent/acp/mcp"
	"github.com/acp-agent/acp-agent/internal/mcp/mcpclient"
	"github.com/acp-agent/acp-agent/internal/test/mcptest"
	"github.com/acp-agent/acp-agent/internal/test/roottest"
	"github.com/acp-agent/acp-agent/workspace"
)

// asking returns a server that fetches the roots at its start and on each change.
func asking(name string) mcpclient.Config {
	return mcptest.Self(name, "sdk", "ASK=1", "REVISION=2025-11-25")
}

// Clause M3.
func TestAnnounceRoots(t *testing.T) {
	a, b := folder(t), folder(t)
	f := newFixture(t, mcpclient.Options{})
	f.change(roottest.Open(t, a), asking("s"))
	before := f.where("s").PID
	f.change(roottest.Open(t, a, b), asking("s"))
	require.Equal(t, uris(t, a, b), f.call("s.roots", ""))
	require.Equal(t, before, f.where("s").PID, "it was kept")
	require.Eventually(t, func() bool { return f.logs.Count("roots changed") == 1 }, patience, 5*time.Millisecond)
	f.change(roottest.Open(t, a, b), asking("s"))
	require.Equal(t, uris(t, a, b), f.call("s.roots", ""))
	require.Equal(t, 1, f.logs.Count("roots changed"), "the same roots are no change")
}

// Clauses M3, A12.
func TestRestartOnLostRoot(t *testing.T) {
	a, b := folder(t), folder(t)
	notified := asking("notified")
	notified.Policy.KeepOnShrink = true
	never, early := mcptest.Self("never", "sdk"), mcptest.Self("early", "early")
	f := newFixture(t, mcpclient.Options{})
	f.change(roottest.Open(t, a, b), asking("s"), notified, never, early)
	f.call("early.count", "")
	s, n, v := f.where("s").PID, f.where("notified").PID, f.where("never").PID

	f.change(roottest.Open(t, a), asking("s"), notified, never, early)
	require.Equal(t, uris(t, a), f.call("s.roots", ""), "the first call reaches the new process")
	require.NotEqual(t, s, f.where("s").PID)
	require.True(t, ended(s))
	require.Equal(t, n, f.where("notified").PID, "its policy says so")
	require.Equal(t, v, f.where("never").PID, "it had not asked")
	f.host.shown.WaitFor(t, "Restarting MCP server s: it still has "+b)
	require.Equal(t, uris(t, a), f.call("notified.roots", ""))
	require.Equal(t, "1", f.call("early.count", ""))
	require.Equal(t, 1, f.logs.Count("roots announced before the end"))
}

// Clause M6.
func TestVanishedRoot(t *testing.T) {
	top := folder(t, "a/f", "", "b/f", "")
	a, b := filepath.Join(top, "a"), filepath.Join(top, "b")
	f := newFixture(t, mcpclient.Options{}.With(mcpclient.Limits{CheckRoots: 20 * time.Millisecond}))
	templated := mcptest.Self("templated", "sdk")
	templated.Args, templated.Policy.Templates = []string{"${roots}"}, true
	f.change(roottest.Open(t, a, b), asking("s"), templated)
	require.Equal(t, uris(t, a, b), f.call("s.roots", ""))
	require.Equal(t, []string{a, b}, f.where("templated").Args)

	require.NoError(t, os.Rename(b, b+".away"))
	f.host.shown.WaitFor(t, "No longer there: "+b)
	require.Equal(t, uris(t, a), f.call("s.roots", ""))
	require.Eventually(t, func() bool { return f.logs.Count("roots changed") == 1 }, patience, 5*time.Millisecond)

	require.NoError(t, os.Rename(b+".away", b))
	f.host.shown.WaitFor(t, "There again: "+b)
	require.Equal(t, uris(t, a, b), f.call("s.roots", ""))
	require.Eventually(t, func() bool { return f.logs.Count("roots changed") == 2 }, patience, 5*time.Millisecond)

	require.NoError(t, os.Rename(b, b+".away"))
	require.Eventually(t, func() bool { return f.logs.Count("roots changed") == 3 }, patience, 5*time.Millisecond)
	f.change(roottest.Open(t, a), asking("s"), templated)
	require.Equal(t, []string{a}, f.where("templated").Args, "it was started with the root that is gone")
}

// Clause A24.
func TestToolsCannotChangeRoots(t *testing.T) {
	a, b := folder(t), folder(t)
	f := newFixture(t, mcpclient.Options{})
	f.change(roottest.Open(t, a), asking("s"))
	f.call("s.echo", `{"roots":["`+b+`"],"_meta":{"roots":["`+b+`"]}}`)
	require.Equal(t, uris(t, a), f.call("s.roots", ""))
	prepared, err := f.Prepare(roottest.Open(t, a, b), []mcpclient.Config{asking("s")})
	require.NoError(t, err)
	require.Equal(t, uris(t, a), f.call("s.roots", ""), "not committed")
	prepared.Commit(f.host)
	require.Equal(t, uris(t, a, b), f.call("s.roots", ""))
}

// withRoots returns a process that is started with the roots as arguments.
func withRoots(role string) mcpclient.Config {
	c := mcptest.Self("s", role)
	c.Args, c.Policy.Templates = []string{"${roots}"}, true
	return c
}

// A process that cannot be started is started again at once if the session has other roots, such as
// those that came while it was being started.
func TestOtherRootsEndPause(t *testing.T) {
	f := newFixture(t, mcpclient.Options{}.With(mcpclient.Limits{Backoff: time.Hour}))
	server, before, after := withRoots("exit"), roottest.Open(t, folder(t)), roottest.Open(t, folder(t))
	checked := make(chan *workspace.Workspace, 10)
	var change *mcpclient.Change
	server.Check = func(w *workspace.Workspace) error {
		checked <- w
		if w == before {
			change.Commit(f.host)
			return before.Close()
		}
		return nil
	}
	f.change(before, server)
	var err error
	change, err = f.Prepare(after, []mcpclient.Config{server})
	require.NoError(t, err)
	_, err = f.List(t.Context())
	require.NoError(t, err)
	began := time.Now()
	require.Same(t, before, <-checked)
	require.Same(t, after, <-checked)
	f.state(acpmcp.Waiting)
	f.change(roottest.Open(t, after.Roots().Cwd().String()), server)
	require.Equal(t, acpmcp.Waiting, f.Servers()[0].State)
	require.Empty(t, checked, "the same roots")
	f.change(roottest.Open(t, folder(t)), server)
	<-checked
	require.Less(t, time.Since(began), 20*time.Second, "less than the longest pause")
}

// Clause A25.
func TestStartedInFoldersThatWereChecked(t *testing.T) {
	f := newFixture(t, mcpclient.Options{})
	server, allowed := withRoots("sdk"), roottest.Open(t, folder(t))
	var change *mcpclient.Change
	server.Check = func(w *workspace.Workspace) error {
		if w != allowed {
			return errors.New("not there")
		}
		change.Commit(f.host)
		return nil
	}
	f.change(allowed, server)
	var err error
	change, err = f.Prepare(roottest.Open(t, folder(t)), []mcpclient.Config{server})
	require.NoError(t, err)
	_, err = f.try("s.where", "")
	require.ErrorContains(t, err, "it was not started: not there")
}

// Clause A12.
func TestCommitDoesNotWait(t *testing.T) {
	a, b := folder(t), folder(t)
	f := newFixture(t, mcpclient.Options{})
	f.change(roottest.Open(t, a), mcptest.Self("silent", "silent"), asking("s"))
	require.NotZero(t, f.where("s").PID)
	ctx, cancel := context.WithCancel(t.Context())
	listed := make(chan struct{})
	go func() {
		defer close(listed)
		_, _ = mcptest.ListTools(ctx, f)
	}()
	f.state(acpmcp.Starting)
	f.change(roottest.Open(t, a, b), mcptest.Self("silent", "silent"), asking("s"))
	require.Equal(t, uris(t, a, b), f.call("s.roots", ""))
	cancel()
	<-listed
}

// Clause M15.
func TestKeptServerKeepsToolNames(t *testing.T) {
	w := roottest.Open(t, folder(t))
	f := newFixture(t, mcpclient.Options{})
	ours, theirs, second := mcptest.Self("my fs", "sdk"), mcptest.Self("my_fs", "sdk"), mcptest.Self("my fs", "sdk", "A=b")
	prefixes := func() (all []string) {
		for _, s := range f.Servers() {
			all = append(all, s.Prefix)
		}
		return all
	}
	f.change(w, ours)
	require.Equal(t, []string{"my_fs"}, prefixes())
	f.change(w, theirs, ours, second)
	require.Equal(t, []string{"my_fs_2", "my_fs", "my_fs_3"}, prefixes(), "a newcomer takes no name that is in use")
	f.change(w, second, theirs)
	require.Equal(t, []string{"my_fs_3", "my_fs_2"}, prefixes())
	f.change(w, second, ours)
	require.Equal(t, []string{"my_fs_3", "my_fs"}, prefixes())
}

// Clause M3.
func TestReconnectOnLostRoot(t *testing.T) {
	a, b := folder(t), folder(t)
	for name, c := range map[string]struct {
		keep  bool
		asks  bool
		times int64
	}{
		"asked":                 {false, true, 2},
		"never asked":           {false, false, 1},
		"asked, to be notified": {true, true, 1},
		"never, to be notified": {true, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var initialized atomic.Int64
			handler := mcp.NewStreamableHTTPHandler(toolServers(t, "2025-11-25", &initialized), nil)
			server := remote("r", acpmcp.HTTP, remoteServer(t, handler).URL+"/mcp")
			server.Policy.KeepOnShrink = c.keep
			f := newFixture(t, mcpclient.Options{})
			f.change(roottest.Open(t, a, b), server)
			tool := "r.echo"
			if c.asks {
				tool = "r.roots"
			}
			f.call(tool, "{}")
			require.EqualValues(t, 1, initialized.Load())
			f.change(roottest.Open(t, a), server)
			f.call(tool, "{}")
			require.Equal(t, c.times, initialized.Load())
		})
	}
}

// Clause M5.
func TestCallAfterChangeWaits(t *testing.T) {
	f := newFixture(t, mcpclient.Options{}.With(mcpclient.Limits{SettleMax: patience}))
	c := asking("s")
	c.Policy.SettleWithoutRoots = patience // only an answered roots/list makes it ready
	var roots []string
	for range 6 {
		roots = append(roots, folder(t))
		f.change(roottest.Open(t, roots[0], roots[1:]...), c)
		f.call("s.echo", "{}")
		require.Equal(t, strings.Split(uris(t, roots...), "\n"), f.Servers()[0].SentRoots)
	}
}

// If a server settled before each call, these calls would take too long.
//
// Clause M5.
func TestSettlesOnce(t *testing.T) {
	f := newFixture(t, mcpclient.Options{})
	c := mcptest.Self("s", "sdk", "REVISION=2025-11-25")
	f.change(roottest.Open(t, folder(t)), c)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for range 100 {
		_, err := f.send(ctx, "s.echo", "{}")
		require.NoError(t, err)
	}
	require.Nil(t, f.Servers()[0].SentRoots, "it never asked")
}
