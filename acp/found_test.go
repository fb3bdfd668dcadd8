package acp_test

import (
	"context"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/internal/mcpclient"
	"github.com/acp-agent/acp-agent/internal/testutil/logtest"
	"github.com/acp-agent/acp-agent/internal/testutil/proctest"
	"github.com/acp-agent/acp-agent/sessionstore"
)

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
	return strings.Join(c.texts(id, "start "+name), "\n")
}

func TestA25_AFoundServerIsStartedOnceTheUserAllowsIt(t *testing.T) {
	c := connect(t, acp.Options{ConsentDir: filepath.Join(t.TempDir(), "allowed")})
	c.initialize()
	a, b := folder(t), folder(t)
	long := strings.Repeat("long ", 200) + "end"
	declare(t, b, "found", "files", []string{"--one", long}, map[string]string{"SECRET": "s3cret-value"})
	id := c.serve([]string{a, b})
	require.Contains(t, c.texts(id, "catalog")[0], "mcp_server found of 1")
	require.Equal(t, []string{""}, c.texts(id, "tools"), "it is found, not started")

	for _, no := range []string{"reject-once", "cancelled", "no-such-option"} {
		c.permit(no)
		require.Contains(t, c.start(id, "found"), "started: ")
		require.Equal(t, []string{""}, c.texts(id, "servers"))
	}
	question := string(c.questions()[0].Params)
	for _, shown := range []string{proctest.Executable(), "--one", long, "SECRET", filepath.Join(b, ".mcp.json")} {
		require.Contains(t, question, shown)
	}
	require.NotContains(t, question, "s3cret-value")

	c.permit("allow-once")
	require.Equal(t, "started: <nil>", c.start(id, "found"))
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

	c.call("session/load", servedParams(id, []string{a, b}))
	require.Equal(t, []string{""}, c.texts(id, "servers"), "M15: the list of a load is the complete list")
}

func TestA25_WithoutAPlaceForConsentsEachStartIsAskedFor(t *testing.T) {
	c := connect(t, acp.Options{})
	c.initialize()
	c.permit("allow-always")
	a := folder(t)
	declare(t, a, "found", "files", nil, nil)
	id := c.serve([]string{a})
	c.start(id, "found")
	c.start(id, "found")
	require.Len(t, c.questions(), 2)
}

func TestA25_AFoundServerTakesNoPlaceOfTheClients(t *testing.T) {
	c := served(t, acp.Options{})
	a := folder(t)
	declare(t, a, "one", "files", []string{"--found"}, nil)
	id := c.serve([]string{a}, server("one", "files"))
	require.Equal(t, "started: <nil>", c.start(id, "one"))
	require.NotContains(t, c.use(id, "one.where"), "--found")
	require.Contains(t, c.use(id, "one_2.where"), "--found")
}

func TestA30_APolicyByNameBelievesNoFoundServer(t *testing.T) {
	c := served(t, acp.Options{MCPPolicy: func(string) mcpclient.Policy {
		return mcpclient.Policy{ReadOnly: mcpclient.Allow, Roots: mcpclient.Off}
	}})
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

func TestA25_ExpansionOfWhatWasFound(t *testing.T) {
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
		require.Equal(t, "started: <nil>", c.start(id, "found"), written)
		require.True(t, strings.HasSuffix(c.use(id, "found.where"), " with "+expected), c.use(id, "found.where"))
		c.call("session/close", idParams(id))
	}
	for written, expected := range map[string]string{
		"${ACP_TEST_UNSET}":     "${ACP_TEST_UNSET} is not set in the environment",
		"${env:ACP_TEST_UNSET}": "is not set in the environment",
		"${input:token}":        "${input:token} is a value that only an editor can ask for",
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

func TestS5_ExpandedSecretsAreNotLogged(t *testing.T) {
	t.Setenv("ACP_TEST_TOKEN", "tangerine-s3cret")
	t.Setenv("ACP_TEST_KEY", "tangerine-k3y")
	a, log := folder(t), &logtest.Text{}
	state := t.TempDir()
	c := served(t, acp.Options{Logger: log.Logger(slog.LevelDebug), ConsentDir: state}.With(acp.Tuning{MCP: mcpclient.Options{MaxRestarts: -1}}))
	c.permit("allow-always")
	declare(t, a, "found", "note", []string{"--token=${ACP_TEST_TOKEN}"}, map[string]string{"TOKEN": "${ACP_TEST_KEY}"})
	id := c.serve([]string{a})
	require.Equal(t, "started: <nil>", c.start(id, "found"))
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

func TestA25_WhatIsNoServerIsNotStarted(t *testing.T) {
	c := served(t, acp.Options{})
	a := folder(t)
	require.NoError(t, os.WriteFile(filepath.Join(a, ".mcp.json"), []byte(`{"mcpServers":{"broken":{"command":7}}}`), 0o600))
	id := c.serve([]string{a})
	require.Contains(t, c.start(id, "broken"), "broken is no MCP server that can be started")
	require.Empty(t, c.questions())
}

// A start that a runtime goes on with while the session is loaded anew gives no server the old roots back.
func TestA12_A24_AStartDuringALoadBringsNoRootsBack(t *testing.T) {
	for _, when := range []string{"while the load is stored", "after it"} {
		t.Run(when, func(t *testing.T) {
			store := &hooked{Memory: sessionstore.NewMemory()}
			starting, goOn, started := make(chan struct{}), make(chan struct{}), make(chan error, 1)
			r := &scripted{started: started}
			c := served(t, acp.Options{Store: store, Backend: r.serve, MCPPolicy: func(name string) mcpclient.Policy {
				if name == "found" {
					close(starting)
					<-goOn
				}
				return mcpclient.Policy{OnShrink: mcpclient.Notify}
			}}.With(acp.Tuning{CancelGrace: 1}))
			a, b := folder(t), folder(t)
			declare(t, a, "found", "files", nil, nil)
			one := server("one", "files")
			id := c.serve([]string{a, b}, one)
			require.Equal(t, uris(t, a, b), c.use(id, "one.roots"))
			prompt, line := c.request("session/prompt", promptParams(id, "start found"))
			c.send(line)
			<-starting
			if when == "after it" {
				c.call("session/load", servedParams(id, []string{a}, one))
				close(goOn)
				require.Error(t, <-started)
			} else {
				store.activating = func() { close(goOn) }
				c.call("session/load", servedParams(id, []string{a}, one))
				<-started
			}
			require.Contains(t, []string{"cancelled", "end_turn"}, c.response(prompt).stopReason(t), "it may have been the faster")
			require.Equal(t, uris(t, a), c.use(id, "one.roots"))
			require.Equal(t, []string{"one ready"}, c.texts(id, "servers"))
		})
	}
}

func TestA28_NothingIsStartedInASessionThatWasClosed(t *testing.T) {
	r := &scripted{}
	c := served(t, acp.Options{Backend: r.serve})
	a := folder(t)
	declare(t, a, "found", "files", nil, nil)
	hosts := r.hosts()
	id := c.serve([]string{a})
	h := <-hosts
	found := h.Catalog().Artifacts()[0]
	c.call("session/close", idParams(id))
	require.Error(t, h.StartServer(context.Background(), found))
	require.Empty(t, c.questions())
	require.Empty(t, h.Tools().Servers())
}
