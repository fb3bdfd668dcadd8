package acp_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/mcp"
	"github.com/acp-agent/acp-agent/internal/mcp/mcpclient"
	"github.com/acp-agent/acp-agent/internal/test/logtest"
	"github.com/acp-agent/acp-agent/internal/test/mcptest"
	"github.com/acp-agent/acp-agent/internal/test/memstore"
	"github.com/acp-agent/acp-agent/internal/test/proctest"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
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

// Clause M4.
func TestServersStartLazily(t *testing.T) {
	notOverRemote(t, namesServers)
	h := proctest.Watch(t)
	c := served(t, acp.Options{}.With(acp.Tuning{
		MCP: mcpclient.Options{Wait: time.Millisecond},
	}))
	var servers []map[string]any
	var idle []string
	for i := range 8 { // as many as start at once
		name := fmt.Sprint("s", i)
		servers, idle = append(servers, server(name, "silent", h.Env())), append(idle, name+" idle")
	}
	id := c.serve([]string{folder(t)}, servers...)
	require.Equal(t, []string{strings.Join(idle, ", ")}, c.texts(id, "servers"))
	h.None()
	require.Equal(t, []string{""}, c.texts(id, "tools"), "slow servers delay no listing beyond its bound")
	for range servers {
		started := h.Next()
		defer started.Ended()
	}
	c.leave()
}

// Clause M15.
func TestLoadReplacesServers(t *testing.T) {
	notOverRemote(t, namesServers)
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

// Clause M15.
func TestFailedRequestKeepsServers(t *testing.T) {
	notOverRemote(t, namesServers)
	r := &scripted{}
	store := &hooked{Store: memstore.New(t)}
	c := served(t, acp.Options{Store: store, Backend: func() backend.Backend { return r }})
	a, b := folder(t), folder(t)
	old, other := server("old", "files"), server("other", "files")
	id := c.serve([]string{a, b}, old)
	where, states := c.use(id, "old.where"), c.texts(id, "servers")
	for name, failing := range map[string]struct {
		roots  []string
		list   []map[string]any
		before func()
	}{
		"the backend":      {[]string{a}, []map[string]any{other}, func() { r.refuse = errors.New("not today") }},
		"the store":        {[]string{a}, []map[string]any{other}, func() { store.activate = errors.New("disk full") }},
		"a missing root":   {[]string{a, filepath.Join(a, "missing")}, []map[string]any{other}, nil},
		"another cwd":      {[]string{b}, []map[string]any{other}, nil},
		"too many servers": {[]string{a}, slices.Repeat([]map[string]any{other}, 65), nil},
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

// Clause W12.
func TestTooManyServers(t *testing.T) {
	notOverRemote(t, namesServers)
	c := served(t, acp.Options{})
	m := c.try("session/new", servedParams("", []string{folder(t)}, slices.Repeat([]map[string]any{server("a", "files")}, 65)...))
	require.NotNil(t, m.Error)
	require.Equal(t, jsonrpc.CodeInvalidParams, m.Error.Code)
	require.Contains(t, m.Error.Message, "64")
	require.Empty(t, c.list(`{}`))
}

// Clauses A12, M3.
func TestLoadWithFewerRoots(t *testing.T) {
	notOverRemote(t, namesServers)
	c := served(t, acp.Options{})
	a, b := folder(t), folder(t)
	one := server("one", "files")
	id := c.serve([]string{a, b}, one)
	before := c.use(id, "one.where")
	require.Equal(t, uris(t, a, b), c.use(id, "one.roots"))
	c.call("session/load", servedParams(id, []string{a}, one))
	c.await(0, func(m message) bool { // the user sees it
		return strings.Contains(string(m.Params), "Restarting MCP server one: it still has "+b)
	})
	require.Equal(t, uris(t, a), c.use(id, "one.roots"))
	require.NotEqual(t, before, c.use(id, "one.where"))
}

// The turn that runs in the session has ended before a server hears of the roots of the next.
//
// Clause A12.
func TestTurnEndsBeforeRootsChange(t *testing.T) {
	notOverRemote(t, namesServers)
	c := served(t, acp.Options{})
	a, b := folder(t), folder(t)
	one := server("one", "files")
	id := c.serve([]string{a}, one)
	require.Equal(t, uris(t, a), c.use(id, "one.roots"))
	prompt := c.post("session/prompt", promptParams(id, "use one.hang"))
	c.await(0, func(m message) bool { return strings.Contains(string(m.Params), "hanging") })
	load := c.post("session/load", servedParams(id, []string{a, b}, one))
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
//
// Clause A12.
func TestSlowTurnKeepsRoots(t *testing.T) {
	notOverRemote(t, namesServers)
	r := &scripted{release: make(chan struct{})}
	c := served(t, acp.Options{Backend: r.serve}.With(acp.Tuning{CancelGrace: patience}))
	hosts := r.hosts()
	a, b := folder(t), folder(t)
	one := server("one", "files")
	id := c.serve([]string{a}, one)
	h := <-hosts
	use := func(tool string) string {
		result, err := h.Tools().Call(t.Context(), h, backend.ToolRequest{Name: tool})
		require.NoError(t, err)
		return blockTexts(result.Content)
	}
	require.Equal(t, uris(t, a), use("one.roots"))
	prompt := c.beginTurn(id, "stubborn", "stubborn")
	load := c.post("session/load", servedParams(id, []string{a, b}, one))
	require.Eventually(t, func() bool { return slices.Contains(r.noted(), "cancel ") }, patience, time.Millisecond)
	require.Equal(t, uris(t, a), use("one.roots"))
	require.NotContains(t, use("one.heard"), "list_changed")
	close(r.release)
	require.Equal(t, "cancelled", c.response(prompt).stopReason(t))
	require.Nil(t, c.response(load).Error)
	require.Equal(t, uris(t, a, b), c.use(id, "one.roots"))
	require.Equal(t, 1, c.changes(id, "one"))
}

// Clause A14.
func TestForkServers(t *testing.T) {
	notOverRemote(t, namesServers)
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
	require.NoError(t, json.Unmarshal(c.call("session/fork", encode(map[string]any{
		"sessionId": id, "cwd": a, "additionalDirectories": []string{}})), &forked))
	require.Equal(t, []string{""}, c.texts(forked.SessionID, "servers"), "M15: omitted is none")
}

// Clause A22.
func TestServersAreApart(t *testing.T) {
	notOverRemote(t, namesServers)
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

// Clauses A28, W9.
func TestServersEndWithSession(t *testing.T) {
	notOverRemote(t, namesServers)
	for name, end := range map[string]func(c *client, id, cwd string, store sessionstore.Store){
		"A28/close":       func(c *client, id, _ string, _ sessionstore.Store) { c.call("session/close", idParams(id)) },
		"A28/delete":      func(c *client, id, _ string, _ sessionstore.Store) { c.call("session/delete", idParams(id)) },
		"W9/end of input": func(c *client, _, _ string, _ sessionstore.Store) { c.leave() },
		"M15/a load of two": func(c *client, id, cwd string, _ sessionstore.Store) {
			c.call("session/load", servedParams(id, []string{cwd}))
		},
		"S3/another process": func(c *client, id, cwd string, store sessionstore.Store) {
			newer := start(t, acp.Options{Store: store})
			newer.call("session/load", rootsParams(id, cwd))
			require.NotNil(t, c.try("session/prompt", promptParams(id, "say x")).Error)
		},
	} {
		t.Run(name, func(t *testing.T) {
			h, store := proctest.Watch(t), memstore.New(t)
			c := served(t, acp.Options{Store: store}.With(acp.Tuning{MCP: mcpclient.Options{Wait: time.Millisecond}}))
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

// Clause M2.
func TestBackendConnects(t *testing.T) {
	notOverRemote(t, namesServers)
	h := proctest.Watch(t)
	r := &scripted{connects: true}
	c := served(t, acp.Options{Backend: func() backend.Backend { return r }})
	a := folder(t)
	id := c.serve([]string{a}, server("one", "files", h.Env()), server("two", "files", h.Env()))
	require.Equal(t, []string{"one idle, two idle"}, c.texts(id, "servers"))
	c.call("session/load", servedParams(id, []string{a}, server("one", "files", h.Env())))
	c.leave()
	h.None()
}

// The methods differ in whether they need mcpServers, not in how they read them.
//
// Clause W12.
func TestServersInEveryMethod(t *testing.T) {
	notOverRemote(t, namesServers)
	c := served(t, acp.Options{})
	a := folder(t)
	id := c.serve([]string{a}, server("given", "files"))
	for _, method := range opening {
		params := rootsParams(id, a)
		t.Run("W12/refused by "+method, func(t *testing.T) {
			for servers, want := range map[string]string{
				`{}`: "mcpServers type", `""`: "mcpServers type", `[7]`: "mcpServers[0] type", `[null]`: "mcpServers[0] null",
				`[{"command":"c","args":[],"env":[]}]`:                                                   "mcpServers[0].name required",
				`[{"name":null,"command":"c","args":[],"env":[]}]`:                                       "mcpServers[0].name null",
				`[{"name":"s","args":[],"env":[]}]`:                                                      "mcpServers[0].command required",
				`[{"name":"s","command":"c","env":[]}]`:                                                  "mcpServers[0].args required",
				`[{"name":"s","command":"c","args":null,"env":[]}]`:                                      "mcpServers[0].args null",
				`[{"name":"s","command":"c","args":[]}]`:                                                 "mcpServers[0].env required",
				`[{"name":"s","command":"c","args":[],"env":{}}]`:                                        "mcpServers[0].env type",
				`[{"type":"http","url":"http://localhost","headers":[]}]`:                                "mcpServers[0].name required",
				`[{"type":"http","name":"s","headers":[]}]`:                                              "mcpServers[0].url required",
				`[{"type":"http","name":"s","url":"http://localhost"}]`:                                  "mcpServers[0].headers required",
				`[{"type":"http","name":"s","command":"c","args":[],"env":[],"headers":[]}]`:             "mcpServers[0].url required",
				`[{"type":"stdio","name":"s","url":"http://localhost","headers":[],"args":[],"env":[]}]`: "mcpServers[0].command required",
				`[{"type":"sse","name":"s","url":"http://localhost","headers":[]}]`:                      "mcpServers[0].type unsupported",
				`[{"type":"ws","name":"s"}]`:                                                             "mcpServers[0].type unsupported",
				`[{"type":"HTTP","name":"s","url":"x","headers":[]}]`:                                    "mcpServers[0].type unsupported",
				`[{"type":"","name":"s","command":"c","args":[],"env":[]}]`:                              "mcpServers[0].type unsupported",
				`[{"type":7,"name":"s","command":"c","args":[],"env":[]}]`:                               "mcpServers[0].type type",
				`[{"name":"s","command":"c","args":[],"env":[{"value":"v"}]}]`:                           "mcpServers[0].env[0].name required",
				`[{"name":"s","command":"c","args":[],"env":[{"name":"N"}]}]`:                            "mcpServers[0].env[0].value required",
				`[{"type":"http","name":"s","url":"x","headers":[{"name":1,"value":"v"}]}]`:              "mcpServers[0].headers[0].name type",
				`[{"name":"s","command":"c","args":[],"env":[{"name":"N","value":77}]}]`:                 "mcpServers[0].env[0].value type",
			} {
				m := c.try(method, altered(params, "mcpServers", servers))
				require.Equal(t, []string{want}, m.findings(t), servers)
				require.NotContains(t, string(m.Error.Data), "77", "values may be secrets")
				require.Equal(t, jsonrpc.CodeInvalidParams, m.Error.Code)
			}
		})
		t.Run("W12/absent from "+method, func(t *testing.T) {
			m := c.try(method, altered(params, "mcpServers", ""))
			if method == "session/new" || method == "session/load" {
				require.Equal(t, []string{"mcpServers required"}, m.findings(t))
				return
			}
			require.Nil(t, m.Error)
		})
	}
	for _, method := range opening[1:3] {
		t.Run("W12/null is none in "+method, func(t *testing.T) {
			c.call("session/load", servedParams(id, []string{a}, server("given", "files")))
			require.Equal(t, []string{"given idle"}, c.texts(id, "servers"))
			c.call(method, altered(rootsParams(id, a), "mcpServers", "null"))
			require.Equal(t, []string{""}, c.texts(id, "servers"))
		})
	}
}

// Where an agent behind us connects servers, its own capabilities say which types there are; stdio
// needs none.
//
// Clause W12.
func TestServerTypes(t *testing.T) {
	notOverRemote(t, namesServers)
	for advertised, refused := range map[string]map[string]bool{
		`{"http":true,"sse":false}`: {"sse": true},
		`{"http":false,"sse":true}`: {"http": true},
		`{}`:                        {"http": true, "sse": true},
		`null`:                      {"http": true, "sse": true},
	} {
		c := start(t, acp.Options{Backend: func() backend.Backend {
			return &advertising{initialize: `{"agentCapabilities":{"mcpCapabilities":` + advertised + `}}`}
		}})
		a := folder(t)
		for _, kind := range []string{"http", "sse", "stdio"} {
			m := c.try("session/new", altered(rootsParams("", a), "mcpServers",
				`[{"type":"`+kind+`","name":"s","command":"c","args":[],"env":[],"url":"http://localhost:1","headers":[]}]`))
			if !refused[kind] {
				require.Nil(t, m.Error, "%s with %s", kind, advertised)
				continue
			}
			require.Equal(t, []string{"mcpServers[0].type unsupported"}, m.findings(t))
			require.Contains(t, m.Error.Message, `the MCP server "s" has the type "`+kind+`", which was not advertised in mcpCapabilities: use the type stdio`)
		}
	}
}

// declare writes a server into a root's .mcp.json. It plays r, with arguments and an environment.
func declare(t *testing.T, root, name, r string, args []string, env map[string]string) {
	t.Helper()
	all := map[string]string{}
	maps.Copy(all, env)
	for _, e := range proctest.Env(r) {
		key, value, _ := strings.Cut(e, "=")
		all[key] = value
	}
	if args == nil {
		args = []string{}
	}
	file := map[string]any{"mcpServers": map[string]any{name: map[string]any{"command": proctest.Executable(), "args": args, "env": all}}}
	require.NoError(t, os.WriteFile(filepath.Join(root, ".mcp.json"), []byte(encode(file)), 0o600))
}

// start has the session start a server that was found.
func (c *client) start(id, name string) string {
	c.t.Helper()
	return c.say(id, "/mcp start "+name)
}

// Clause A25.
func TestStartServer(t *testing.T) {
	notOverRemote(t, namesServers)
	c := start(t, acp.Options{ConsentDir: filepath.Join(t.TempDir(), "allowed")})
	a, b := folder(t), folder(t)
	long := strings.Repeat("long ", 200) + "end"
	declare(t, b, "found", "files", []string{"--one", long}, map[string]string{"SECRET": "s3cret-value"})
	id := c.serve([]string{a, b})
	require.Contains(t, c.texts(id, "catalog")[0], "mcp_server found of 1")
	require.Equal(t, []string{""}, c.texts(id, "tools"), "it is found, not started")

	for _, no := range []string{"reject-once", "no-such-option"} {
		c.permit(no)
		require.Contains(t, c.start(id, "found"), "This did not work: MCP server found was not used: ")
		require.Equal(t, []string{""}, c.texts(id, "servers"))
	}
	c.permit("cancelled")
	require.Equal(t, "cancelled", c.try("session/prompt", promptParams(id, "/mcp start found")).stopReason(t))
	require.Equal(t, []string{""}, c.texts(id, "servers"))
	question := string(c.questions()[0].Params)
	for _, shown := range []string{proctest.Executable(), "--one", long, "SECRET", filepath.Join(b, ".mcp.json")} {
		require.Contains(t, question, shown)
	}
	require.NotContains(t, question, "s3cret-value")

	c.permit("allow-once")
	require.Contains(t, c.start(id, "found"), "MCP server **`found`**")
	require.Contains(t, c.use(id, "found.where"), "in "+b+" with --one", "M4: where it was found")
	require.Equal(t, uris(t, a, b), c.use(id, "found.roots"))
	from := len(c.questions())
	c.permit("allow-always")
	c.start(id, "found")
	c.start(id, "found")
	require.Len(t, c.questions(), from+1, "always is remembered")
	require.Equal(t, []string{"found ready"}, c.texts(id, "servers"), "and there is one of it, which goes on")
	c.start(c.serve([]string{a, b}), "found")
	require.Len(t, c.questions(), from+1, "in other sessions too")
	declare(t, b, "found", "files", []string{"--two"}, nil)
	c.start(id, "found")
	require.Len(t, c.questions(), from+2, "as long as it stays the same")
	require.Contains(t, c.use(id, "found.where"), "with --two", "it takes the place of the first")

	before := len(c.messages())
	c.call("session/load", servedParams(id, []string{a, b}))
	for _, m := range c.messages()[before:] {
		require.NotContains(t, string(m.Params), "Start MCP server", "the question whether to start it is not a tool call of the agent")
	}
	require.Equal(t, []string{""}, c.texts(id, "servers"), "M15: the list of a load is the complete list")
}

// Clause A25.
func TestStartServerWithEnvFile(t *testing.T) {
	notOverRemote(t, namesServers)
	c := start(t, acp.Options{ConsentDir: filepath.Join(t.TempDir(), "allowed")})
	a, outside := folder(t), folder(t)
	configure := func(envFile string) {
		config := map[string]any{"command": proctest.Executable(), "args": []string{"x"}, "env": map[string]string{"ACP_TEST_OWN": "own"}, "envFile": envFile}
		file := map[string]any{"mcpServers": map[string]any{"found": config}}
		require.NoError(t, os.WriteFile(filepath.Join(a, ".mcp.json"), []byte(encode(file)), 0o600))
	}
	env := filepath.Join(a, "local.env")
	role := strings.Join(proctest.Env("files"), "\n") + "\n" // without which the process is no server
	write := func(content string) { require.NoError(t, os.WriteFile(env, []byte(content+role), 0o600)) }
	write("# ours\nexport ACP_TEST_FILE=\"from file\" # x\nACP_TEST_TOKEN=tangerine-s3cret\nACP_TEST_OWN=not this\nACP_TEST_LITERAL=${HOME}\n")
	configure("${workspaceFolder}/local.env")
	id := c.serve([]string{a})
	c.permit("allow-always")
	require.Contains(t, c.start(id, "found"), "MCP server **`found`**")
	question := string(c.questions()[0].Params)
	for _, shown := range []string{env, "ACP_TEST_FILE=from file", "ACP_TEST_TOKEN", "ACP_TEST_LITERAL=${HOME}"} {
		require.Contains(t, question, shown)
	}
	require.NotContains(t, question, "tangerine-s3cret")
	require.NotContains(t, question, "not this")
	require.Contains(t, c.start(id, "found"), "MCP server **`found`**")
	require.Len(t, c.questions(), 1, "always is remembered")

	write("ACP_TEST_FILE=other\n")
	require.Contains(t, c.start(id, "found"), "MCP server **`found`**")
	require.Len(t, c.questions(), 2, "as long as the file stays the same")
	require.NoError(t, os.WriteFile(filepath.Join(a, "second.env"), []byte("ACP_TEST_FILE=other\n"+role), 0o600))
	configure("second.env")
	require.Contains(t, c.start(c.serve([]string{a}), "found"), "MCP server **`found`**")
	require.Len(t, c.questions(), 3, "and is the same file")

	require.NoError(t, os.WriteFile(filepath.Join(outside, "out.env"), []byte("A=b\n"), 0o600))
	configure(filepath.Join(outside, "out.env"))
	require.Contains(t, c.start(c.serve([]string{a}), "found"), "outside")
	configure("missing.env")
	require.Contains(t, c.start(c.serve([]string{a}), "found"), "cannot read its environment file")
	write("no assignment\n")
	configure("local.env")
	require.Contains(t, c.start(c.serve([]string{a}), "found"), "line 1 is not NAME=VALUE")
	require.Len(t, c.questions(), 3, "nobody is asked about what cannot be started")
	require.Contains(t, c.use(id, "found.where"), "in "+a+" with x")
}

// Clause A25.
func TestStartServerWithoutConsentDir(t *testing.T) {
	notOverRemote(t, namesServers)
	c := start(t, acp.Options{})
	c.permit("allow-always")
	a := folder(t)
	declare(t, a, "found", "files", nil, nil)
	id := c.serve([]string{a})
	c.start(id, "found")
	c.start(id, "found")
	require.Len(t, c.questions(), 2)
}

// Clause A30.
func TestPolicyOfFoundServer(t *testing.T) {
	notOverRemote(t, namesServers)
	c := served(t, acp.Options{Permissions: allowingRules("tool ours.* read-only", "tool found.*"),
		MCPPolicy: func(string) mcp.Policy { return mcp.Policy{Roots: new(false)} }})
	a := folder(t)
	declare(t, a, "found", "files", nil, nil)
	id := c.serve([]string{a}, server("ours", "files"))
	c.start(id, "found")
	from := len(c.questions())
	require.Contains(t, c.use(id, "ours.claim"), "claimed")
	require.Len(t, c.questions(), from)
	require.Contains(t, c.use(id, "found.claim"), "claimed")
	require.Len(t, c.questions(), from+1)
	require.Contains(t, c.use(id, "found.roots"), "error", "M2: the rest of the policy holds")
}

// A session that could not be opened again yet is closed like any other.
func TestCloseWhileOpeningIsLate(t *testing.T) {
	notOverRemote(t, namesServers)
	reached, goOn := make(chan struct{}), make(chan struct{})
	var late atomic.Bool
	h := proctest.Watch(t)
	c := served(t, acp.Options{MCPPolicy: func(string) mcp.Policy {
		if late.CompareAndSwap(true, false) {
			close(reached)
			<-goOn
		}
		return mcp.Policy{}
	}}.With(acp.Tuning{MaxSessions: 1}))
	defer close(goOn)
	cwd := folder(t)
	params := func(id string) string { return servedParams(id, []string{cwd}, server("one", "files", h.Env())) }
	id := c.serve([]string{cwd}, server("one", "files", h.Env()))
	c.use(id, "one.where")
	late.Store(true)
	load := c.post("session/load", params(id))
	<-reached
	c.send(notification("$/cancel_request", `{"requestId":`+load+`}`))
	require.NotNil(t, c.response(load).Error)
	c.call("session/close", idParams(id))
	h.Next().Ended()
	c.open(cwd)
}

// A panic of the policy function fails the request that needs it, and nothing else.
//
// Clause A30.
func TestPolicyPanics(t *testing.T) {
	notOverRemote(t, namesServers)
	var panics atomic.Bool
	c := served(t, acp.Options{MCPPolicy: func(string) mcp.Policy {
		if panics.Load() {
			panic("policy")
		}
		return mcp.Policy{}
	}})
	a, b := folder(t), folder(t)
	declare(t, a, "found", "files", nil, nil)
	id := c.serve([]string{a}, server("ours", "files"))
	panics.Store(true)
	m := c.try("session/prompt", promptParams(id, "/mcp start found"))
	require.Contains(t, m.Error.Message, "panicked")
	require.Contains(t, c.try("session/new", servedParams("", []string{a}, server("ours", "files"))).Error.Message, "panicked")
	require.Contains(t, c.use(id, "ours.where"), filepath.Base(a), "the session goes on")
	panics.Store(false)
	require.Contains(t, c.use(c.serve([]string{b}, server("ours", "files")), "ours.where"), filepath.Base(b))
}

// Clause A25.
func TestExpandVariables(t *testing.T) {
	notOverRemote(t, namesServers)
	t.Setenv("ACP_TEST_SET", "set-value")
	a := folder(t)
	c := served(t, acp.Options{})
	for written, expected := range map[string]string{
		"${ACP_TEST_SET}":                          "set-value",
		"${ACP_TEST_SET:-other}":                   "set-value",
		"x${ACP_TEST_UNSET:-a b}y":                 "xa by",
		"${ACP_TEST_UNSET:-}":                      "",
		"${env:ACP_TEST_SET}":                      "set-value",
		"${workspaceFolder}/x":                     a + "/x",
		"$ACP_TEST_SET ${ACP_TEST_SET":             "$ACP_TEST_SET ${ACP_TEST_SET",
		"${ACP_TEST_SET}${ACP_TEST_UNSET:-${HOME}": "set-value${HOME",
	} {
		declare(t, a, "found", "files", []string{written}, nil)
		id := c.serve([]string{a})
		require.Contains(t, c.start(id, "found"), "MCP server **`found`**", written)
		require.True(t, strings.HasSuffix(c.use(id, "found.where"), " with "+expected), c.use(id, "found.where"))
		c.call("session/close", idParams(id))
	}
	for written, expected := range map[string]string{
		"${ACP_TEST_UNSET}":     "${ACP_TEST_UNSET} is not set in the environment",
		"${env:ACP_TEST_UNSET}": "is not set in the environment",
		"${input:token}":        "only an editor can ask for ${input:token}",
	} {
		from := len(c.questions())
		declare(t, a, "found", "files", []string{written}, nil)
		id := c.serve([]string{a})
		said := c.start(id, "found")
		require.Contains(t, said, expected)
		require.Contains(t, said, "found", "which server")
		require.Len(t, c.questions(), from, "nobody is asked about what cannot be started")
		require.Equal(t, []string{""}, c.texts(id, "servers"))
	}
}

// Clause S5.
func TestExpandedSecretsAreNotLogged(t *testing.T) {
	notOverRemote(t, namesServers)
	t.Setenv("ACP_TEST_TOKEN", "tangerine-s3cret")
	t.Setenv("ACP_TEST_KEY", "tangerine-k3y")
	a, log := folder(t), &logtest.Text{}
	state := t.TempDir()
	c := served(t, acp.Options{Logger: log.Logger(slog.LevelDebug), ConsentDir: state})
	c.permit("allow-always")
	declare(t, a, "found", "note", []string{"--token=${ACP_TEST_TOKEN}"}, map[string]string{"TOKEN": "${ACP_TEST_KEY}"})
	id := c.serve([]string{a})
	require.Contains(t, c.start(id, "found"), "MCP server **`found`**")
	require.Contains(t, c.use(id, "found.where"), "error")
	c.leave()
	require.Contains(t, log.String(), "no licence for [secret] --token=[secret]")
	require.Contains(t, log.String(), "session="+id)
	require.NotContains(t, log.String(), "tangerine")
	require.NotContains(t, encode(c.messages()), "tangerine")
	files, err := os.ReadDir(state)
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, f := range files {
		content, err := os.ReadFile(filepath.Join(state, f.Name()))
		require.NoError(t, err)
		require.NotContains(t, f.Name()+string(content), "tangerine")
	}
}

// A server that is being started while the session is loaded does not get the old roots.
//
// Clauses A12, A24.
func TestStartServerDuringLoad(t *testing.T) {
	notOverRemote(t, namesServers)
	for _, when := range []string{"while the load is stored", "after it"} {
		t.Run(when, func(t *testing.T) {
			store := &hooked{Store: memstore.New(t)}
			starting, goOn := make(chan struct{}), make(chan struct{})
			c := served(t, acp.Options{Store: store, MCPPolicy: func(name string) mcp.Policy {
				if name == "found" {
					close(starting)
					<-goOn
				}
				return mcp.Policy{KeepOnShrink: true}
			}}.With(acp.Tuning{CancelGrace: 1}))
			a, b := folder(t), folder(t)
			declare(t, a, "found", "files", nil, nil)
			one := server("one", "files")
			id := c.serve([]string{a, b}, one)
			require.Equal(t, uris(t, a, b), c.use(id, "one.roots"))
			prompt := c.post("session/prompt", promptParams(id, "/mcp start found"))
			<-starting
			if when == "after it" {
				c.call("session/load", servedParams(id, []string{a}, one))
				close(goOn)
			} else {
				store.activating = func() { close(goOn) }
				c.call("session/load", servedParams(id, []string{a}, one))
			}
			require.Contains(t, []string{"cancelled", "end_turn"}, c.response(prompt).stopReason(t), "it may have been the faster")
			require.Equal(t, uris(t, a), c.use(id, "one.roots"))
			require.Equal(t, []string{"one ready"}, c.texts(id, "servers"))
		})
	}
}

// A call is shown, asked for, made, shown again and recorded.
//
// Clause A30.
func TestToolCall(t *testing.T) {
	notOverRemote(t, namesServers)
	c := connect(t, acp.Options{})
	c.permit("allow-always")
	c.initialize()
	a := folder(t)
	one := server("one", "files")
	id := c.serve([]string{a}, one)
	require.Contains(t, c.use(id, "one.where"), a)
	require.Len(t, c.questions(), 1)
	var asked struct {
		SessionID string
		ToolCall  struct{ ToolCallID, Title string }
	}
	require.NoError(t, json.Unmarshal(c.questions()[0].Params, &asked))
	require.Equal(t, id, asked.SessionID)
	require.Equal(t, `MCP server "one": where`, asked.ToolCall.Title)
	require.Equal(t, []string{"pending", "in_progress", "completed"}, statuses(c.messages(), asked.ToolCall.ToolCallID))

	c.use(id, "one.where")
	require.Len(t, c.questions(), 1, "always is remembered")
	c.use(id, "one.heard")
	require.Len(t, c.questions(), 2, "for the tool")
	other := c.serve([]string{a}, one)
	c.use(other, "one.where")
	require.Len(t, c.questions(), 3, "and the session")

	c.permit("reject-once")
	require.Contains(t, c.use(id, "one.roots"), "error")
	c.permit("cancelled")
	require.Contains(t, c.use(id, "one.roots"), "error")

	from := len(c.messages())
	c.call("session/load", servedParams(id, []string{a}, one))
	require.Equal(t, []string{"pending", "in_progress", "completed"}, statuses(c.messages()[from:], asked.ToolCall.ToolCallID), "replayed")
	c.permit("")
	from = len(c.questions())
	require.Contains(t, c.use(id, "one.where"), a, "it went on, with what the user allowed")
	require.Len(t, c.questions(), from)
}

// statuses are those that a tool call was shown with.
func statuses(messages []message, toolCall string) (all []string) {
	for _, m := range messages {
		var p struct {
			Update struct{ ToolCallID, Status string }
		}
		if m.Method == "session/update" && json.Unmarshal(m.Params, &p) == nil && p.Update.ToolCallID == toolCall {
			all = append(all, p.Update.Status)
		}
	}
	return all
}

// A server may ask the user if the client can show the question.
//
// Clause A26.
func TestElicitation(t *testing.T) {
	notOverRemote(t, namesServers)
	for capabilities, says := range map[string]string{
		`{"elicitation":{"form":{}}}`: "acceptmap[name:Ada]",
		`{"elicitation":{"url":{}}}`:  "error",
	} {
		c := connect(t, acp.Options{})
		c.answer(func(m message) string {
			if m.Method == "elicitation/create" {
				return `{"action":"accept","content":{"name":"Ada"}}`
			}
			return `{"outcome":{"outcome":"selected","optionId":"allow-once"}}`
		})
		c.call("initialize", `{"protocolVersion":1,"clientCapabilities":`+capabilities+`}`)
		id := c.serve([]string{folder(t)}, server("one", "files"))
		require.Contains(t, c.use(id, "one.ask"), says)
		asked := slices.IndexFunc(c.messages(), func(m message) bool { return m.Method == "elicitation/create" })
		require.Equal(t, says == "error", asked < 0)
		if asked >= 0 {
			require.Contains(t, string(c.messages()[asked].Params), `"sessionId":"`+id+`"`)
		}
	}
}

// Cancelling the turn ends an unanswered permission request, and the call is shown as failed.
//
// Clause W5.
func TestCancelDuringToolPermission(t *testing.T) {
	notOverRemote(t, namesServers)
	c := start(t, acp.Options{})
	id := c.serve([]string{folder(t)}, server("one", "files"))
	prompt := c.post("session/prompt", promptParams(id, "use one.where"))
	_, at := c.await(0, func(m message) bool { return m.Method == "session/request_permission" })
	c.send(notification("session/cancel", idParams(id)))
	require.Equal(t, "cancelled", c.response(prompt).stopReason(t))
	c.await(at, func(m message) bool { return m.Method == "$/cancel_request" })
	c.await(at, func(m message) bool { return strings.Contains(string(m.Params), `"failed"`) })
}

// A server starts in a folder by its path, so the path must still lead to the folder of the
// session: at first, after the user was asked, and when the server is restarted.
//
// Clause C13.
func TestServerDirectory(t *testing.T) {
	notOverRemote(t, namesServers)
	replace := func(dir, victim string) {
		require.NoError(t, os.Rename(dir, dir+"-old"))
		require.NoError(t, os.Symlink(victim, dir))
	}
	open := func(t *testing.T) (c *client, root string) {
		c = start(t, acp.Options{})
		root = filepath.Join(folder(t), "root")
		require.NoError(t, os.Mkdir(root, 0o700))
		return c, root
	}
	t.Run("of the client", func(t *testing.T) {
		c, root := open(t)
		id := c.serve([]string{root}, server("given", "files"))
		require.Equal(t, []string{"given idle"}, c.texts(id, "servers"))
		replace(root, folder(t))
		require.Contains(t, c.use(id, "given.where"), "the folder "+root+" was replaced after the session started")
	})
	t.Run("restarted", func(t *testing.T) {
		c, root := open(t)
		c.permit("allow-once")
		id := c.serve([]string{root}, server("given", "files"))
		where := c.use(id, "given.where")
		require.Contains(t, where, "in "+root)
		var pid int
		_, err := fmt.Sscan(where, &pid)
		require.NoError(t, err)
		replace(root, folder(t))
		process, err := os.FindProcess(pid)
		require.NoError(t, err)
		require.NoError(t, process.Kill())
		require.Eventually(t, func() bool {
			return strings.Contains(c.use(id, "given.where"), "the folder "+root+" was replaced after the session started")
		}, patience, 10*time.Millisecond)
	})
	t.Run("found", func(t *testing.T) {
		c, root := open(t)
		declare(t, root, "found", "files", nil, nil)
		id := c.serve([]string{root})
		c.permit("allow-once")
		require.Contains(t, c.texts(id, "catalog")[0], "found")
		replace(root, folder(t))
		require.Contains(t, c.start(id, "found"), "the folder "+root+" was replaced after the session started")
		require.Empty(t, c.questions(), "the user is not asked about it")
	})
	t.Run("found and replaced while the user is asked", func(t *testing.T) {
		c, root := open(t)
		declare(t, root, "found", "files", nil, nil)
		id := c.serve([]string{root})
		c.answer(func(message) string {
			replace(root, t.TempDir())
			return `{"outcome":{"outcome":"selected","optionId":"allow-once"}}`
		})
		require.Contains(t, c.start(id, "found"), "the folder "+root+" was replaced after the session started")
		require.Len(t, c.questions(), 1)
	})
}

// A server's claim that a tool only reads is not enough to call it without asking, although the
// tool call is shown as a read.
//
// Clause A30.
func TestReadOnlyClaimIsAskedFor(t *testing.T) {
	notOverRemote(t, namesServers)
	c := connect(t, acp.Options{Permissions: allowingRules("read")})
	c.permit("allow-once")
	c.initialize()
	id := c.serve([]string{folder(t)}, server("one", "files"))
	require.Contains(t, c.use(id, "one.claim"), "claimed")
	require.Len(t, c.questions(), 1)
	require.Contains(t, string(c.questions()[0].Params), `"kind":"read"`)
}
