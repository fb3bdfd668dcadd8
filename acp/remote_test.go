package acp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/mcp"
	"github.com/acp-agent/acp-agent/internal/test/memstore"
	"github.com/acp-agent/acp-agent/internal/test/proctest"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/workspace"
)

// ownSessionMethods are the methods that name a stored session.
var ownSessionMethods = []string{"session/load", "session/resume", "session/fork", "session/archive",
	"session/unarchive", "session/status", "session/set_title", "session/prompt",
	"session/set_mode", "session/options"}

// namingParams returns params that fit any of ownSessionMethods.
func namingParams(id, cwd string) string {
	return encode(map[string]any{"sessionId": id, "cwd": cwd, "mcpServers": []any{}, "title": "T",
		"modeId": "m", "prompt": []any{map[string]any{"type": "text", "text": "x"}}})
}

// What a backend that users share keeps itself does not exist for them, whether it lists it or not.
//
// Clauses N1, N5.
func TestRemotePeerHasOnlySessionsOnRecord(t *testing.T) {
	dir := folder(t)
	r := &knowing{own: []backend.ForeignSession{theirs(t, "one", dir)}, hidden: []string{"two"}}
	store := memstore.New(t)
	o := acp.Options{Backend: r.serve, Store: store}
	granted := o
	granted.RemoteRights.Sessions = true
	before := remote(t, granted, dir)
	require.Len(t, before.list(`{}`), 1)
	imported := before.list(`{}`)[0].SessionID

	ana := remote(t, o, dir)
	require.Empty(t, ana.list(`{}`))
	require.Empty(t, ana.list(encode(map[string]any{"cwd": dir})))
	for _, id := range []string{"one", "two", imported} {
		for _, method := range ownSessionMethods[:7] {
			require.Equal(t, "not_found", ana.try(method, namingParams(id, dir)).reason(t),
				"%s of %s", method, id)
		}
		for _, method := range ownSessionMethods[7:] {
			require.NotNil(t, ana.try(method, namingParams(id, dir)).Error, method)
		}
		require.Nil(t, ana.try("session/delete", idParams(id)).Error, "as for any unknown id")
		require.Nil(t, ana.try("session/close", idParams(id)).Error)
	}
	require.Empty(t, r.told)
	require.NotContains(t, fmt.Sprint(r.noted()), "open session/")

	id := ana.open(dir)
	ana.texts(id, "state of mine")
	var fork struct{ SessionID string }
	require.NoError(t, json.Unmarshal(ana.call("session/fork", rootsParams(id, dir)), &fork))
	ana.call("session/close", idParams(id))
	ana.call("session/load", rootsParams(id, dir))
	ana.call("session/archive", idParams(id))
	ana.call("session/delete", idParams(id))
	require.Equal(t, []string{"session/archive of mine {}", "session/delete of mine {}"}, r.told)
	require.Equal(t, fork.SessionID, ana.list(`{}`)[0].SessionID)

	require.Len(t, before.list(`{}`), 2, "the imported session is not lost")
	require.Nil(t, before.try("session/load", rootsParams("two", dir)).Error)
}

// talking is a backend that serves every method, and keeps what was passed to it.
type talking struct {
	scripted
	client backend.Client

	mu     sync.Mutex
	passed []string
}

func (k *talking) serve() backend.Backend { return k }

func (k *talking) Initialize(
	_ context.Context, _ backend.Raw, c backend.Client,
) (backend.Info, error) {
	k.client = c
	return backend.Info{Kind: "talking", ConnectsServers: true, Initialize: backend.Raw(
		`{"authMethods":[{"id":"key"}],"_meta":{"ext":1},"agentInfo":{"name":"talking"},` +
			`"agentCapabilities":{"auth":{"logout":{}},"providers":{},"nes":{},"_meta":{"x":{}},` +
			`"promptCapabilities":{"image":true},"sessionCapabilities":{"options":{},"x":{}}}}`)}, nil
}

func (k *talking) Call(_ context.Context, method string, params backend.Raw) backend.Work {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.passed = append(k.passed, method+" "+string(params))
	return func() (backend.Raw, error) { return backend.Raw(`{}`), nil }
}

func (k *talking) Notify(_ context.Context, method string, params backend.Raw) {
	k.Call(context.Background(), method, params)
}

func (k *talking) Open(
	ctx context.Context, a backend.Activation, h backend.Host,
) (backend.Session, backend.Opened, error) {
	k.Call(ctx, string(a.Cause), a.Params)
	s, opened, err := k.scripted.Open(ctx, a, h)
	return talkingSession{s, k}, opened, err
}

type talkingSession struct {
	backend.Session
	in *talking
}

func (s talkingSession) Prompt(
	ctx context.Context, params backend.Raw, u backend.Updates,
) backend.Work {
	s.in.Call(ctx, "session/prompt", params)
	return s.Session.Prompt(ctx, params, u)
}

func (s talkingSession) Call(ctx context.Context, method string, params backend.Raw) backend.Work {
	return s.in.Call(ctx, method, params)
}

func (s talkingSession) Notify(ctx context.Context, method string, params backend.Raw) {
	s.in.Call(ctx, method, params)
}

// take returns what was passed since the last call.
func (k *talking) take() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	passed := k.passed
	k.passed = nil
	return passed
}

// refusals collects what an operator is told of refused messages.
type refusals struct {
	mu  sync.Mutex
	all []string
}

func (r *refusals) observe(e acp.Event) {
	if e, ok := e.(acp.RefusedEvent); ok {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.all = append(r.all, e.Method)
	}
}

func (r *refusals) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.all
	r.all = nil
	return all
}

// Clause N5.
func TestRemotePeerUsesWhatIsGranted(t *testing.T) {
	account := []string{"authenticate", "logout", "providers/set", "auth/status"}
	extensions := []string{"_x/export", "session/export", "providers", "Logout", "mcp/message"}
	for name, test := range map[string]struct {
		grants          acp.RemoteRights
		refused, passed []string
	}{
		"nothing":    {acp.RemoteRights{}, append(account, extensions...), nil},
		"account":    {acp.RemoteRights{Account: true}, extensions, account},
		"extensions": {acp.RemoteRights{Extensions: true}, account, extensions},
		"sessions":   {acp.RemoteRights{Sessions: true}, append(account, extensions...), nil},
	} {
		t.Run(name, func(t *testing.T) {
			var told refusals
			k, dir := &talking{}, folder(t)
			c := remote(t, acp.Options{Backend: k.serve, RemoteRights: test.grants,
				Observe: told.observe}, dir)
			id := c.open(dir)
			k.take()
			for _, method := range test.refused {
				for _, params := range []string{`{"methodId":"key"}`, `{"sessionId":"raw"}`, idParams(id)} {
					if method == "authenticate" && params != `{"methodId":"key"}` {
						continue
					}
					m := c.try(method, params)
					require.Equal(t, "not_allowed", m.reason(t), "%s %s", method, params)
					require.Equal(t, jsonrpc.CodeMethodNotFound, m.Error.Code)
					require.Equal(t, []string{method}, told.take())
				}
			}
			for _, method := range test.passed {
				require.Nil(t, c.try(method, `{"methodId":"key"}`).Error, method)
				require.Equal(t, []string{method + ` {"methodId":"key"}`}, k.take())
			}
			require.Empty(t, k.take())
			for _, method := range []string{"session/set_mode", "session/set_model"} {
				c.call(method, idParams(id))
				require.Equal(t, []string{method + " {}"}, k.take())
			}
			if test.grants.Sessions {
				return
			}
			for _, method := range append(test.passed, "session/set_model", "session/set_config_option") {
				require.Equal(t, "not_found", c.try(method, idParams("raw")).reason(t), method)
			}
			require.Empty(t, k.take(), "the id of another session reached the backend")
		})
	}
}

// A refused notification is dropped, and the operator is told.
func TestRefusedNotification(t *testing.T) {
	var told refusals
	k, dir := &talking{}, folder(t)
	c := remote(t, acp.Options{Backend: k.serve, Observe: told.observe}, dir)
	id := c.open(dir)
	k.take()
	for _, method := range []string{"providers/set", "_x/y"} {
		c.send(notification(method, `{"baseUrl":"https://example.com"}`),
			notification(method, idParams(id)))
	}
	var all []string
	require.Eventually(t, func() bool {
		all = append(all, told.take()...)
		return len(all) == 4
	}, patience, time.Millisecond)
	require.Empty(t, k.take())
}

// What is refused is not offered.
func TestRemotePeerIsOfferedWhatIsGranted(t *testing.T) {
	for name, test := range map[string]struct {
		grants        acp.RemoteRights
		offered, kept []string
	}{
		"nothing":    {acp.RemoteRights{}, nil, []string{"key", "logout", "providers", "nes", "ext", `"x"`}},
		"account":    {acp.RemoteRights{Account: true}, []string{"key", "logout", "providers"}, []string{"nes", `"x"`, "ext"}},
		"extensions": {acp.RemoteRights{Extensions: true}, []string{"nes", "ext", `"x"`}, []string{"key", "logout", "providers"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := connectTo(t, newServer(t, acp.ServerOptions{}, acp.Options{
				Backend: (&talking{}).serve, RemoteRights: test.grants}), acp.Peer{Remote: true})
			offered := string(c.initialize())
			for _, want := range append(test.offered, "talking", `"image":true`, `"options":{}`,
				`"fork":{}`) {
				require.Contains(t, offered, want)
			}
			for _, other := range test.kept {
				require.NotContains(t, offered, other)
			}
			if !test.grants.Account {
				require.Nil(t, c.try("authenticate", `{"methodId":"none"}`).Error)
			}
		})
	}
}

// Agents take other sessions, programs and folders from _meta and from members that the adapter
// does not check.
//
// Clauses N4, N5.
func TestRemotePeerPassesNoSettings(t *testing.T) {
	k, dir := &talking{}, folder(t)
	policy := func(string) mcp.Policy {
		return mcp.Policy{Command: []string{"x"}, URL: "http://127.0.0.1:1/mcp"}
	}
	o := acp.Options{Backend: k.serve, MCPPolicy: policy}
	params := func(id string) string {
		return encode(map[string]any{"sessionId": id, "cwd": dir, "mcpServers": []any{},
			"resume": "raw", "_meta": map[string]any{"options": map[string]any{"resume": "raw"}}})
	}
	c := remote(t, o, dir)
	var opened struct{ SessionID string }
	require.NoError(t, json.Unmarshal(c.call("session/new", params("")), &opened))
	for _, method := range []string{"session/load", "session/resume", "session/fork"} {
		c.call(method, params(opened.SessionID))
	}
	for _, method := range []string{"session/prompt", "session/set_mode"} {
		var more map[string]any
		require.NoError(t, json.Unmarshal([]byte(params(opened.SessionID)), &more))
		delete(more, "mcpServers")
		more["modeId"], more["prompt"] = "m", []any{map[string]any{"type": "text", "text": "x"}}
		more["cwd"] = "/etc"
		c.try(method, encode(more))
	}
	c.passEverywhere(opened.SessionID, dir)
	passed := k.take()
	require.Len(t, passed, 11)
	for _, m := range passed {
		require.NotContains(t, m, "raw")
		require.NotContains(t, m, "/etc")
	}
	for what, server := range map[string]map[string]any{
		"another command": {"type": "http", "url": "http://127.0.0.1:1/mcp", "headers": []any{}, "command": "/bin/sh"},
		"a directory":     {"command": "x", "args": []any{}, "env": []any{}, "cwd": "/"},
	} {
		server["name"] = "s"
		m := c.try("session/new", servedParams("", []string{dir}, server))
		require.Equal(t, "unsupported", m.reason(t), what)
	}
	require.Empty(t, k.take())

	o.RemoteRights.Extensions = true
	c = remote(t, o, dir)
	c.call("session/new", params(""))
	require.Contains(t, k.take()[0], `"resume":"raw"`)
}

// passEverywhere sends the backend the setting "raw" where a message may hide it.
func (c *client) passEverywhere(id, dir string) {
	hidden := map[string]any{"resume": "raw", "_meta": map[string]any{"resume": "raw"}}
	with := func(more map[string]any) string {
		maps.Copy(more, hidden)
		return encode(more)
	}
	c.call("session/prompt", with(map[string]any{"sessionId": id, "prompt": []any{
		map[string]any{"type": "text", "text": "say", "_meta": hidden,
			"annotations": map[string]any{"_meta": hidden}},
		map[string]any{"type": "resource", "resource": map[string]any{"uri": "file:///x", "text": "",
			"_meta": hidden}}}}))
	for method, member := range map[string]string{"session/set_mode": "modeId",
		"session/set_model": "modelId", "session/set_config_option": "configId"} {
		c.call(method, with(map[string]any{"sessionId": id, member: "x"}))
		for _, params := range []string{`{}`, `["raw"]`, `{"sessionId":["raw"]}`, `{"id":"raw"}`,
			`{"sessionId":null,"id":"raw"}`, `{"SessionId":"raw"}`} {
			require.NotNil(c.t, c.try(method, params).Error, "%s %s", method, params)
			c.send(notification(method, params))
		}
		c.send(notification(method, with(map[string]any{"sessionId": id})))
	}
	c.call("session/set_title", with(map[string]any{"sessionId": id, "title": "x"}))
	c.call("session/options", with(map[string]any{"cwd": dir}))
}

// What a backend says outside of sessions may be about those of others, or about its account.
//
// Clause N5.
func TestBackendTellsRemotePeerWhatIsGranted(t *testing.T) {
	methods := []string{"_session/list/changes", "auth/status_update", "elicitation/complete"}
	for name, test := range map[string]struct {
		grants  acp.RemoteRights
		allowed []bool
	}{
		"nothing":    {acp.RemoteRights{}, []bool{false, false, true}},
		"account":    {acp.RemoteRights{Account: true}, []bool{false, true, true}},
		"extensions": {acp.RemoteRights{Extensions: true}, []bool{true, false, true}},
	} {
		t.Run(name, func(t *testing.T) {
			k := &talking{}
			c := connectTo(t, newServer(t, acp.ServerOptions{}, acp.Options{
				Backend: k.serve, RemoteRights: test.grants}), acp.Peer{Remote: true})
			c.call("initialize",
				`{"protocolVersion":1,"clientCapabilities":{"elicitation":{"url":{}}}}`)
			for i, method := range methods {
				err := k.client.Notify(t.Context(), method, backend.Raw(`{}`))
				require.Equal(t, test.allowed[i], err == nil, "%s: %v", method, err)
			}
		})
	}
}

// Folders and MCP servers are checked in whatever request they are.
//
// Clauses A3, N4.
func TestSetupOfOtherMethodsIsChecked(t *testing.T) {
	dir, other, state := folder(t), folder(t), folder(t)
	k := &talking{}
	denied, err := workspace.ParseDir(state)
	require.NoError(t, err)
	o := acp.Options{Backend: k.serve, RemoteRights: acp.RemoteRights{Extensions: true},
		Workspace: workspace.Options{Policy: workspace.Policy{Deny: []workspace.Dir{denied}}}}
	server := map[string]any{"name": "s", "command": proctest.Executable(), "args": []any{},
		"env": []any{}}
	local := connectTo(t, newServer(t, acp.ServerOptions{}, o), acp.Peer{})
	local.initialize()
	for who, c := range map[string]*client{"local": local, "remote": remote(t, o, dir)} {
		id := c.open(dir)
		k.take()
		for _, method := range []string{"session/options", "session/later", "_x/y"} {
			for what, params := range map[string]map[string]any{
				"relative":          {"cwd": "x"},
				"null":              {"cwd": nil},
				"not a path":        {"cwd": 7},
				"missing":           {"cwd": dir + "/missing"},
				"denied":            {"cwd": state},
				"misspelled":        {"CWD": dir},
				"no cwd":            {"additionalDirectories": []any{dir}},
				"denied additional": {"cwd": dir, "additionalDirectories": []any{state}},
				"broken server":     {"cwd": dir, "mcpServers": []any{map[string]any{"name": "s"}}},
			} {
				for _, session := range []string{"", id} {
					if session != "" {
						params["sessionId"] = session
					}
					m := c.try(method, encode(params))
					require.NotNil(t, m.Error, "%s: %s of %s %q", who, what, method, session)
					require.Equal(t, jsonrpc.CodeInvalidParams, m.Error.Code, m.Error.Message)
				}
				c.send(notification(method, encode(params)))
			}
			if who == "remote" {
				require.Equal(t, "denied", c.try(method, rootsParams("", other)).reason(t))
				require.Equal(t, "server_not_allowed",
					c.try(method, servedParams("", []string{dir}, server)).reason(t))
				continue
			}
			good := servedParams("", []string{dir, other}, server)
			c.call(method, good)
			require.Equal(t, []string{method + " " + good}, k.take())
		}
		require.Empty(t, k.take(), who)
	}
	local.call("_x/y", encode(map[string]any{"sessionId": local.open(dir), "cwd": dir}))
	require.Equal(t, encode(map[string]any{"cwd": dir}), k.take()[1][len("_x/y "):])
}

// session/options is for the folders that session/new would have.
//
// Clause A9.
func TestOptionsHaveDeclaredFolders(t *testing.T) {
	dir, declared := folder(t), folder(t)
	k := &talking{}
	folders := func(workspace.Dir) []acp.Folder {
		return []acp.Folder{{Path: declared, Setting: "--dir"}}
	}
	c := start(t, acp.Options{Backend: k.serve, Folders: folders})
	c.call("session/options", encode(map[string]any{"cwd": dir}))
	require.Equal(t, []string{`session/options ` + encode(map[string]any{"cwd": dir,
		"additionalDirectories": []any{declared}})}, k.take())

	none := start(t, acp.Options{})
	require.Equal(t, jsonrpc.CodeMethodNotFound,
		none.try("session/options", encode(map[string]any{"cwd": dir})).Error.Code)
}

// remote connects a remote client that may open roots in dirs.
func remote(t *testing.T, o acp.Options, dirs ...string) *client {
	t.Helper()
	for _, path := range dirs {
		dir, err := workspace.ParseDir(path)
		require.NoError(t, err)
		o.Workspace.Policy.Allow = append(o.Workspace.Policy.Allow, dir)
	}
	c := connectTo(t, newServer(t, acp.ServerOptions{}, o), acp.Peer{Remote: true})
	c.initialize()
	c.permit("allow-always")
	return c
}

// Clause N4.
func TestRemoteRoots(t *testing.T) {
	dir, other := folder(t), folder(t)
	for _, method := range []string{"session/new", "session/fork", "session/load"} {
		c := remote(t, acp.Options{}, dir)
		id := c.open(dir)
		for _, path := range []string{other, filepath.Join(other, "missing"), "/"} {
			if method != "session/load" { // which says that it is not the session's
				require.Equal(t, "denied", c.try(method, rootsParams(id, path)).reason(t),
					"whether it exists is not told")
			}
			require.Equal(t, "denied", c.try(method, rootsParams(id, dir, path)).reason(t))
		}
		require.Contains(t, c.texts(id, "/roots add "+other)[0], "were not changed")
		file := writeFile(t, filepath.Join(other, "file"), "s3cret")
		require.NotContains(t, c.readFile(id, file), "s3cret")
		require.Empty(t, c.questions())
	}
	none := remote(t, acp.Options{})
	require.Equal(t, "denied", none.try("session/new", rootsParams("", dir)).reason(t))
	local := connectTo(t, newServer(t, acp.ServerOptions{}, acp.Options{}), acp.Peer{})
	local.initialize()
	local.open(dir)
}

// Clause N4.
func TestRemoteServers(t *testing.T) {
	t.Setenv("OPERATORS_SECRET", "s3cret")
	program := proctest.Executable()
	policy := func(name string) mcp.Policy {
		if name == "allowed" {
			return mcp.Policy{Command: []string{program, "--x"}, URL: "http://127.0.0.1:1/mcp"}
		}
		return mcp.Policy{}
	}
	dir := folder(t)
	stdio := func(name, command string, args []any, env ...any) map[string]any {
		return map[string]any{"name": name, "command": command, "args": args,
			"env": append([]any{}, env...)}
	}
	web := func(name, url string) map[string]any {
		return map[string]any{"type": "http", "name": name, "url": url, "headers": []any{}}
	}
	c := remote(t, acp.Options{MCPPolicy: policy, Environment: proctest.Env("files", "OURS=1")}, dir)
	for what, server := range map[string]map[string]any{
		"another name":    stdio("other", program, []any{"--x"}),
		"another program": stdio("allowed", "/bin/sh", []any{"--x"}),
		"other arguments": stdio("allowed", program, []any{"--x", "-c"}),
		"no arguments":    stdio("allowed", program, []any{}),
		"an environment": stdio("allowed", program, []any{"--x"},
			map[string]any{"name": "LD_PRELOAD", "value": "/tmp/x.so"}),
		"another URL":      web("allowed", "http://127.0.0.1:2/mcp"),
		"a URL by no name": web("other", "http://127.0.0.1:1/mcp"),
	} {
		m := c.try("session/new", servedParams("", []string{dir}, server))
		require.Equal(t, "server_not_allowed", m.reason(t), what)
		require.Equal(t, -32602, m.Error.Code)
	}
	id := c.serve([]string{dir}, stdio("allowed", program, []any{"--x"}))
	environment := c.use(id, "allowed.environ")
	require.Contains(t, environment, "OURS=1")
	require.NotContains(t, environment, "OPERATORS_SECRET")
	c.call("session/new", servedParams("", []string{dir}, web("allowed", "http://127.0.0.1:1/mcp")))

	// Whoever can write into a root could otherwise have the server start what they wrote.
	declare(t, dir, "allowed", "files", []string{"--x", "${OPERATORS_SECRET}"}, nil)
	asked := len(c.questions())
	answer := c.start(c.open(dir), "allowed")
	require.Contains(t, answer, "does not allow")
	require.NotContains(t, answer, "s3cret")
	require.Len(t, c.questions(), asked)

	c = remote(t, acp.Options{MCPPolicy: policy, Environment: proctest.Env("files")}, dir)
	written, err := json.Marshal(map[string]any{"mcpServers": map[string]any{
		"allowed": map[string]any{"command": program, "args": []string{"--x"}}}})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".mcp.json"), written, 0o600))
	require.Contains(t, c.start(c.open(dir), "allowed"), "MCP server **`allowed`**")
}
