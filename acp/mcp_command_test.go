package acp_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/test/proctest"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// Clause A25.
func TestMCPCommandWithAnyBackend(t *testing.T) {
	notOverRemote(t, namesServers)
	c := served(t, acp.Options{Backend: using(&scripted{})})
	a := folder(t)
	declare(t, a, "found", "files", nil, nil)
	id := c.serve([]string{a}, server("ours", "files"))
	require.Contains(t, c.say(id, "/mcp"), "MCP server **`ours`** (stdio): idle")
	listed := c.say(id, "/mcp tools")
	require.Contains(t, listed, "tool ours.where")
	require.NotContains(t, listed, "/call", "only one backend has it")
	c.permit("reject-once")
	require.Contains(t, c.say(id, "/mcp start found"), "not used")
	c.permit("allow-once")
	require.Contains(t, c.say(id, "/mcp start found"), "MCP server **`found`** (stdio): ")
	require.Eventually(t, func() bool { // it is given time to read the roots
		return strings.Contains(c.say(id, "/mcp"), "MCP server **`found`** (stdio): ready")
	}, patience, 10*time.Millisecond)
	require.Contains(t, c.say(id, "/mcp"), "started in this session")
	require.Empty(t, c.find(id).Title, "a command of the adapter is no title")
	require.Contains(t, c.use(id, "found.where"), "in "+a, "the backend has it too")
	require.Contains(t, c.say(id, "/mcp start ours"), "No folder configures")
	require.Contains(t, c.say(id, "/mcp nonsense"), "Use `/mcp`")
}

// A server that the user starts from a folder is passed on to an agent that connects its servers.
//
// Clause A25.
func TestMCPCommandPassesFoundServersOn(t *testing.T) {
	notOverRemote(t, namesServers)
	var mu sync.Mutex
	var activations []backend.Activation
	r := &scripted{connects: true, opened: func(a backend.Activation, _ backend.Host) {
		mu.Lock()
		defer mu.Unlock()
		activations = append(activations, a)
	}}
	last := func() (cause backend.Cause, entries []backend.Raw) {
		mu.Lock()
		defer mu.Unlock()
		a := activations[len(activations)-1]
		require.NoError(t, json.Unmarshal(strictjson.Find(a.Params, "mcpServers"), &entries))
		return a.Cause, entries
	}
	c := served(t, acp.Options{Backend: using(r), ConsentDir: t.TempDir()})
	a, b := folder(t), folder(t)
	declare(t, b, "found", "files", []string{"--one"}, map[string]string{"SECRET": "s3cret-value"})
	id := c.serve([]string{a, b}, server("ours", "files"))
	require.Contains(t, c.say(id, "/mcp"), "MCP server **`ours`** (stdio): passed on to the agent")
	c.permit("reject-once")
	require.Contains(t, c.say(id, "/mcp start found"), "not used")
	require.Len(t, activations, 1)

	c.permit("allow-always")
	require.Contains(t, c.say(id, "/mcp start found"),
		"MCP server **`found`** (stdio): passed on to the agent, which connects it")
	cause, entries := last()
	require.Equal(t, backend.Resume, cause)
	require.Len(t, entries, 2)
	require.Equal(t, `"ours"`, string(strictjson.Find(entries[0], "name")))
	require.Equal(t, b, backend.FoundDir(entries[1]), "where it is to be started")
	require.Empty(t, backend.FoundDir(entries[0]))
	require.Contains(t, string(entries[1]), `{"name":"SECRET","value":"s3cret-value"}`)
	require.Contains(t, c.say(id, "/mcp"), "started in this session")
	require.Equal(t, []string{"ours idle, found idle"}, c.texts(id, "servers"))

	asked := len(c.questions())
	declare(t, b, "found", "files", []string{"--two"}, nil)
	require.Contains(t, c.say(id, "/mcp start found"), "passed on")
	require.Len(t, c.questions(), asked+1, "it is another one now")
	_, entries = last()
	require.Len(t, entries, 2, "which takes the place of the first")
	require.Contains(t, string(entries[1]), `"--two"`)
	require.Contains(t, c.say(id, "/mcp tools"), "tool found.where")

	require.Contains(t, c.say(id, "/roots remove "+a), "cannot be removed")
	c.call("session/load", servedParams(id, []string{a, b}, server("ours", "files")))
	_, entries = last()
	require.Len(t, entries, 1, "the list of a load is the complete list")

	remote := `{"mcpServers":{"remote":{"type":"http","url":"http://127.0.0.1:1/mcp"}}}`
	require.NoError(t, os.WriteFile(filepath.Join(b, ".mcp.json"), []byte(remote), 0o600))
	require.Contains(t, c.say(id, "/mcp start remote"), "the type \"http\", which was not advertised")
}

// A server that was found is the session's as long as the folder is that it was found in.
//
// Clause A24.
func TestFoundServerGoesWithItsFolder(t *testing.T) {
	notOverRemote(t, namesServers)
	for _, connects := range []bool{false, true} {
		c := served(t, acp.Options{Backend: using(&scripted{connects: connects})})
		a, b := folder(t), folder(t)
		declare(t, b, "found", "files", nil, nil)
		id := c.serve([]string{a, b}, server("ours", "files"))
		c.permit("allow-once")
		servers := func() string { // beside what is said of a server that starts again
			return strings.Join(c.texts(id, "servers"), "\n")
		}
		require.Contains(t, c.start(id, "found"), "MCP server **`found`**")
		require.Contains(t, c.say(id, "/roots add "+folder(t)), "Added")
		require.Contains(t, servers(), "found ")
		require.Contains(t, c.say(id, "/roots remove "+b), "Removed")
		require.NotContains(t, servers(), "found ")
		require.Contains(t, servers(), "ours ")
	}
}

// An agent may have a /mcp, /permissions, /fork and /diff of its own. It keeps them, and the
// adapter's have other names there.
//
// Clause A25.
func TestCommandsOfTheAgent(t *testing.T) {
	r := &scripted{commands: `[{"name":"mcp","description":"reconnect"},{"name":"permissions","description":"switch"},` +
		`{"name":"fork","description":"branch"},{"name":"diff","description":"theirs"}]`}
	c := start(t, acp.Options{Backend: using(r), ConsentDir: t.TempDir()})
	cwd := folder(t)
	id := c.open(cwd)
	isAnnounced := func(from int) {
		t.Helper()
		m, _ := c.await(from, func(m message) bool {
			return strings.Contains(string(m.Params), "available_commands_update")
		})
		require.Equal(t, []string{"mcp", "permissions", "fork", "diff", "roots", "mcp-servers", "fork-conversation",
			"session-diff", "permission-rules"}, announced(t, m))
	}
	isPassedOn := func() {
		t.Helper()
		c.say(id, "/mcp reconnect mine")
		require.Contains(t, r.noted(), "prompt /mcp reconnect mine")
		c.say(id, "/permissions show")
		require.Contains(t, r.noted(), "prompt /permissions show")
		c.say(id, "/fork it")
		require.Contains(t, r.noted(), "prompt /fork it")
		require.Contains(t, c.say(id, "/fork-conversation"), "Type `/fork-conversation TURN`")
		c.say(id, "/diff")
		require.Contains(t, r.noted(), "prompt /diff")
		require.Contains(t, c.say(id, "/session-diff"), "nothing changed")
		require.Contains(t, c.say(id, "/permission-rules"), "No rules hold in this session")
		require.Contains(t, c.say(id, "/permission-rules x"), "Type `/permission-rules` to see")
		require.Contains(t, c.say(id, "/mcp-servers"), "The session has no MCP servers.")
		require.Contains(t, c.say(id, "/mcp-servers x"), "Use `/mcp-servers`, `/mcp-servers tools`")
		require.NotContains(t, r.noted(), "prompt /mcp-servers")
	}
	isAnnounced(0)
	isPassedOn()

	before := len(c.messages())
	c.call("session/load", rootsParams(id, cwd))
	isAnnounced(before)
	isPassedOn()
	c.call("session/resume", rootsParams(id, cwd))
	isPassedOn()
	c.permit("allow-once")
	require.Contains(t, c.say(id, "/roots add "+folder(t)), "Added")
	isPassedOn()
}

// A session whose agent does not take the server stays as it is.
//
// Clause A25.
func TestMCPCommandWhenTheAgentRefuses(t *testing.T) {
	notOverRemote(t, namesServers)
	h := proctest.Watch(t)
	r := &scripted{connects: true}
	c := served(t, acp.Options{Backend: using(r)})
	a := folder(t)
	declare(t, a, "found", "files", nil, nil)
	id := c.serve([]string{a})
	r.refuse = &backend.Error{Code: -32000, Message: "no more servers"}
	c.permit("allow-once")
	require.Contains(t, c.say(id, "/mcp start found"), "no more servers")
	r.refuse = nil
	said := c.say(id, "/mcp")
	require.Contains(t, said, "The session has no MCP servers.")
	require.True(t, strings.Contains(said, "found, not started"), said)
	require.Equal(t, bracketed(a), c.roots(id))
	c.leave()
	h.None()
}
