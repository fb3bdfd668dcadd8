package acp_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/mcpclient"
	"github.com/acp-agent/acp-agent/internal/testutil/mcptest"
	"github.com/acp-agent/acp-agent/internal/testutil/proctest"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// uris are folders as the URIs of roots, one a line.
func uris(t *testing.T, dirs ...string) string {
	t.Helper()
	return strings.Join(mcptest.URIs(t, dirs...), "\n")
}

// served is a client whose user allows everything.
func served(t *testing.T, o acp.Options) *client {
	t.Helper()
	o.Tuning().CloseGrace = patience // the machine may be busy
	c := connect(t, o)
	c.permit("allow-once")
	c.initialize()
	return c
}

// changes are how often a server has heard that the roots changed.
func (c *client) changes(id, server string) int {
	c.t.Helper()
	return strings.Count(c.use(id, server+".heard"), "notifications/roots/list_changed")
}

func TestM4_NothingStartsAtSessionNew(t *testing.T) {
	h := proctest.Watch(t)
	c := served(t, acp.Options{}.With(acp.Tuning{
		MCP:     mcpclient.Options{Wait: time.Millisecond},
		Starter: mcpclient.NewStarter(mcpclient.StarterOptions{Parallel: 10}),
	}))
	var ten []map[string]any
	var idle []string
	for i := range 10 {
		name := fmt.Sprint("s", i)
		ten, idle = append(ten, server(name, "silent", h.Env())), append(idle, name+" idle")
	}
	id := c.serve([]string{folder(t)}, ten...)
	require.Equal(t, []string{strings.Join(idle, ", ")}, c.texts(id, "servers"))
	h.None()
	require.Equal(t, []string{""}, c.texts(id, "tools"), "slow servers delay no listing beyond its bound")
	for range ten {
		started := h.Next()
		defer started.Ended()
	}
	c.leave()
}

func TestM15_TheListOfAReopenedSessionIsComplete(t *testing.T) {
	c := served(t, acp.Options{})
	a := folder(t)
	stays, goes, comes := server("stays", "files"), server("goes", "files"), server("comes", "files")
	id := c.serve([]string{a}, stays, goes)
	where := c.use(id, "stays.where")
	require.NotContains(t, c.use(id, "goes.where"), "error")

	c.call("session/load", servedParams(id, []string{a}, comes, stays))
	require.Equal(t, []string{"comes idle, stays ready"}, c.texts(id, "servers"))
	require.Equal(t, where, c.use(id, "stays.where"), "it goes on")
	require.Contains(t, c.use(id, "goes.where"), "error")
	require.Zero(t, c.changes(id, "stays"), "the roots are the same")

	c.call("session/resume", encode(map[string]any{"sessionId": id, "cwd": a}))
	require.Equal(t, []string{""}, c.texts(id, "servers"), "omitted is none")
	c.call("session/resume", servedParams(id, []string{a}, stays))
	require.NotEqual(t, where, c.use(id, "stays.where"), "a new process")
}

func TestM15_AFailedRequestChangesNoServer(t *testing.T) {
	r := &scripted{}
	store := &failing{Memory: sessionstore.NewMemory()}
	c := served(t, acp.Options{Store: store, Backend: func() backend.Backend { return r }}.With(acp.Tuning{MCP: mcpclient.Options{MaxServers: 2}}))
	a, b := folder(t), folder(t)
	old, other := server("old", "files"), server("other", "files")
	id := c.serve([]string{a, b}, old)
	where, states := c.use(id, "old.where"), c.texts(id, "servers")
	for name, failing := range map[string]struct {
		roots  []string
		list   []map[string]any
		before func()
	}{
		"the runtime":      {[]string{a}, []map[string]any{other}, func() { r.refuse = errors.New("not today") }},
		"the store":        {[]string{a}, []map[string]any{other}, func() { store.activate = errors.New("disk full") }},
		"a missing root":   {[]string{a, filepath.Join(a, "missing")}, []map[string]any{other}, nil},
		"another cwd":      {[]string{b}, []map[string]any{other}, nil},
		"too many servers": {[]string{a}, []map[string]any{old, other, other}, nil},
		"a broken server":  {[]string{a}, []map[string]any{{"name": "broken"}}, nil},
	} {
		for _, method := range []string{"session/load", "session/resume"} {
			t.Run("M15_A12/"+name+"/"+method, func(t *testing.T) {
				if failing.before != nil {
					failing.before()
				}
				require.NotNil(t, c.try(method, servedParams(id, failing.roots, failing.list...)).Error)
				r.refuse, store.activate = nil, nil
				require.Equal(t, states, c.texts(id, "servers"))
				require.Equal(t, where, c.use(id, "old.where"))
				require.Equal(t, uris(t, a, b), c.use(id, "old.roots"))
				require.Zero(t, c.changes(id, "old"))
			})
		}
	}
}

func TestW12_TooManyServersAreInvalidParams(t *testing.T) {
	c := served(t, acp.Options{}.With(acp.Tuning{MCP: mcpclient.Options{MaxServers: 1}}))
	m := c.try("session/new", servedParams("", []string{folder(t)}, server("a", "files"), server("b", "files")))
	require.NotNil(t, m.Error)
	require.Equal(t, jsonrpc.CodeInvalidParams, m.Error.Code)
	require.Contains(t, m.Error.Message, "1")
	require.Empty(t, c.list(`{}`))
}

func TestA12_M3_ALoadWithMoreRootsTellsEachServerOnce(t *testing.T) {
	c := served(t, acp.Options{})
	a, b := folder(t), folder(t)
	one, two := server("one", "files"), server("two", "files")
	id := c.serve([]string{a}, one, two)
	before := c.use(id, "one.where") + c.use(id, "two.where")
	require.Equal(t, uris(t, a), c.use(id, "one.roots"))
	c.call("session/load", servedParams(id, []string{a, b}, one, two))
	for _, name := range []string{"one", "two"} {
		require.Equal(t, uris(t, a, b), c.use(id, name+".roots"))
		require.Equal(t, 1, c.changes(id, name))
	}
	require.Equal(t, before, c.use(id, "one.where")+c.use(id, "two.where"), "the end of the old activation is not theirs")
}

func TestA12_M3_ALoadWithFewerRootsRestartsServersThatKnowThem(t *testing.T) {
	c := served(t, acp.Options{})
	a, b := folder(t), folder(t)
	one := server("one", "files")
	id := c.serve([]string{a, b}, one)
	before := c.use(id, "one.where")
	require.Equal(t, uris(t, a, b), c.use(id, "one.roots"))
	c.call("session/load", servedParams(id, []string{a}, one))
	c.await(0, func(m message) bool { // the user sees it
		return strings.Contains(string(m.Params), "The MCP server one is started again, because it knows "+b)
	})
	require.Equal(t, uris(t, a), c.use(id, "one.roots"))
	require.NotEqual(t, before, c.use(id, "one.where"))
}

// The turn that runs in the session has ended before a server hears of the roots of the next.
func TestA12_TheRunningTurnEndsBeforeServersHearOfNewRoots(t *testing.T) {
	c := served(t, acp.Options{})
	a, b := folder(t), folder(t)
	one := server("one", "files")
	id := c.serve([]string{a}, one)
	require.Equal(t, uris(t, a), c.use(id, "one.roots"))
	prompt, line := c.request("session/prompt", promptParams(id, "use one.hang"))
	c.send(line)
	c.await(0, func(m message) bool { return strings.Contains(string(m.Params), "hanging") })
	load, line := c.request("session/load", servedParams(id, []string{a, b}, one))
	c.send(line)
	require.Nil(t, c.response(load).Error)
	require.Equal(t, "cancelled", c.response(prompt).stopReason(t))
	heard := c.use(id, "one.heard")
	require.Contains(t, heard, "notifications/cancelled")
	require.Less(t, strings.Index(heard, "notifications/cancelled"), strings.Index(heard, "notifications/roots/list_changed"), heard)
	_, answered := c.await(0, isResponse(prompt))
	_, loaded := c.await(0, isResponse(load))
	require.Less(t, answered, loaded)
}

// Nor is anything of the next roots in force while the turn has not been answered.
func TestA12_ATurnThatEndsSlowlyKeepsTheOldRoots(t *testing.T) {
	r := &scripted{release: make(chan struct{})}
	c := served(t, acp.Options{Backend: r.serve}.With(acp.Tuning{CancelGrace: patience}))
	hosts := r.hosts()
	a, b := folder(t), folder(t)
	one := server("one", "files")
	id := c.serve([]string{a}, one)
	h := <-hosts
	use := func(tool string) string {
		result, err := h.Tools().Call(t.Context(), h, tool, nil)
		require.NoError(t, err)
		return blockTexts(result.Content)
	}
	require.Equal(t, uris(t, a), use("one.roots"))
	prompt, line := c.request("session/prompt", promptParams(id, "stubborn"))
	c.send(line)
	c.await(0, said("stubborn"))
	load, line := c.request("session/load", servedParams(id, []string{a, b}, one))
	c.send(line)
	require.Eventually(t, func() bool { return slices.Contains(r.noted(), "cancel ") }, patience, time.Millisecond)
	require.Equal(t, uris(t, a), use("one.roots"))
	require.NotContains(t, use("one.heard"), "list_changed")
	close(r.release)
	require.Equal(t, "cancelled", c.response(prompt).stopReason(t))
	require.Nil(t, c.response(load).Error)
	require.Equal(t, uris(t, a, b), c.use(id, "one.roots"))
	require.Equal(t, 1, c.changes(id, "one"))
}

func TestA14_AForkHasServersOfItsOwn(t *testing.T) {
	c := served(t, acp.Options{})
	a, b := folder(t), folder(t)
	one := server("one", "files")
	id := c.serve([]string{a, b}, one)
	source := c.use(id, "one.where")
	var forked struct{ SessionID string }
	require.NoError(t, json.Unmarshal(c.call("session/fork", servedParams(id, []string{b}, one)), &forked))
	require.NotEqual(t, source, c.use(forked.SessionID, "one.where"))
	require.Equal(t, uris(t, b), c.use(forked.SessionID, "one.roots"))
	require.Equal(t, uris(t, a, b), c.use(id, "one.roots"))
	c.call("session/close", idParams(forked.SessionID))
	require.Equal(t, source, c.use(id, "one.where"))
	require.Zero(t, c.changes(id, "one"))
	require.NoError(t, json.Unmarshal(c.call("session/fork", encode(map[string]any{"sessionId": id, "cwd": a})), &forked))
	require.Equal(t, []string{""}, c.texts(forked.SessionID, "servers"), "M15: omitted is none")
}

func TestA22_SessionsWithTheSameServerSeeTheirOwnRoots(t *testing.T) {
	c := served(t, acp.Options{})
	a, b := folder(t), folder(t)
	one := server("one", "files")
	first, second := c.serve([]string{a, b}, one), c.serve([]string{b}, one)
	require.Equal(t, uris(t, a, b), c.use(first, "one.roots"))
	require.Equal(t, uris(t, b), c.use(second, "one.roots"))
	require.Contains(t, c.use(first, "one.where"), "in "+a)
	require.Contains(t, c.use(second, "one.where"), "in "+b, "M4")
	c.call("session/load", servedParams(second, []string{b, a}, one))
	require.Equal(t, uris(t, b, a), c.use(second, "one.roots"))
	require.Equal(t, uris(t, a, b), c.use(first, "one.roots"))
	require.Zero(t, c.changes(first, "one"))
}

func TestA28_W9_TheEndOfASessionEndsItsServers(t *testing.T) {
	for name, end := range map[string]func(c *client, id, cwd string, store sessionstore.Store){
		"A28/close":       func(c *client, id, _ string, _ sessionstore.Store) { c.call("session/close", idParams(id)) },
		"A28/delete":      func(c *client, id, _ string, _ sessionstore.Store) { c.call("session/delete", idParams(id)) },
		"W9/end of input": func(c *client, _, _ string, _ sessionstore.Store) { c.leave() },
		"M15/a load of two": func(c *client, id, cwd string, _ sessionstore.Store) {
			c.call("session/load", servedParams(id, []string{cwd}))
		},
		"S3/another process": func(c *client, id, cwd string, store sessionstore.Store) {
			newer := connect(t, acp.Options{Store: store})
			newer.initialize()
			newer.call("session/load", rootsParams(id, cwd))
			require.NotNil(t, c.try("session/prompt", promptParams(id, "say x")).Error)
		},
	} {
		t.Run(name, func(t *testing.T) {
			h, store := proctest.Watch(t), sessionstore.NewMemory()
			c := served(t, acp.Options{Store: store}.With(acp.Tuning{MCP: mcpclient.Options{Wait: time.Millisecond, StopTimeout: 50 * time.Millisecond}}))
			cwd := folder(t)
			id := c.serve([]string{cwd}, server("one", "wrapper", h.Env()), server("two", "stubborn", h.Env()))
			c.texts(id, "tools")
			wrapper, below, stubborn := h.Next(), h.Next(), h.Next()
			end(c, id, cwd, store)
			wrapper.Ended()
			below.Ended()
			stubborn.Ended()
			c.leave()
			h.None()
		})
	}
}

func TestM2_ARuntimeThatConnectsServersItselfHasNoneOfOurs(t *testing.T) {
	h := proctest.Watch(t)
	r := &scripted{mcp: backend.BackendConnects}
	c := served(t, acp.Options{Backend: func() backend.Backend { return r }}.With(acp.Tuning{MCP: mcpclient.Options{MaxServers: 1}}))
	a := folder(t)
	require.NoError(t, os.WriteFile(filepath.Join(a, ".mcp.json"), []byte(`{"mcpServers":{"found":{"command":"x"}}}`), 0o600))
	id := c.serve([]string{a}, server("one", "files", h.Env()), server("two", "files", h.Env()))
	require.Equal(t, []string{""}, c.texts(id, "tools"))
	require.Contains(t, c.texts(id, "start found")[0], "connects MCP servers itself: add found to its configuration")
	c.call("session/load", servedParams(id, []string{a}, server("one", "files", h.Env())))
	c.leave()
	h.None()
}
