package proxy_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/acp/proxy"
	"github.com/acp-agent/acp-agent/acp/proxy/profiles"
	"github.com/acp-agent/acp-agent/internal/mcp/mcprelay"
	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/mcptest"
	"github.com/acp-agent/acp-agent/workspace"
)

// sentServers returns the raw MCP servers of the latest request of a method that the agent
// received.
func (h *system) sentServers(method string) (servers []json.RawMessage) {
	h.t.Helper()
	for _, r := range h.received() {
		if r.method == method {
			var p struct{ McpServers []json.RawMessage }
			require.NoError(h.t, json.Unmarshal([]byte(r.params), &p))
			servers = p.McpServers
		}
	}
	return servers
}

// servers returns the same servers decoded.
func (h *system) servers(method string) (servers []sentServer) {
	h.t.Helper()
	for _, raw := range h.sentServers(method) {
		servers = append(servers, parsed(h.t, raw))
	}
	return servers
}

// sentServer is a stdio server in mcpServers.
type sentServer struct {
	Name, Command string
	Args          []string
	Env           []struct{ Name, Value string }
}

func parsed(t testing.TB, server json.RawMessage) (s sentServer) {
	t.Helper()
	require.NoError(t, json.Unmarshal(server, &s))
	return s
}

var rootsTools = process.Command{Path: "/opt/acp-agent", Args: []string{"mcp"}}

// withTools returns options with a tool server for an agent with this profile.
func withTools(t testing.TB, profile profiles.Profile) proxy.Options {
	t.Helper()
	return proxy.Options{Profile: profile, RootsTools: rootsTools,
		RelayDir: filepath.Join(dirtest.Short(t), "relay")}
}

// folders returns the folders that our tool server would serve.
func (s sentServer) folders(t testing.TB) ([]string, error) {
	t.Helper()
	require.Equal(t, "--roots-from", s.Args[len(s.Args)-2])
	require.Len(t, s.Env, 1)
	require.Equal(t, "ACP_AGENT_RELAY_SECRET", s.Env[0].Name)
	roots, err := mcprelay.SessionRoots(t.Context(), s.Args[len(s.Args)-1], s.Env[0].Value)
	var dirs []string
	for _, r := range roots {
		dirs = append(dirs, r.Dir.String())
	}
	return dirs, err
}

// tells returns what our tool server would tell the model in its instructions.
func (s sentServer) tells(t testing.TB) string {
	t.Helper()
	told, err := mcprelay.SessionContext(t.Context(), s.Args[len(s.Args)-1], s.Env[0].Value)
	require.NoError(t, err)
	return told
}

// serves fails unless the tool server serves the folders of all.
func (s sentServer) serves(t testing.TB, all workspace.Roots) {
	t.Helper()
	dirs, err := s.folders(t)
	require.NoError(t, err)
	require.Equal(t, dirsOf(all), dirs)
}

// servesNothing fails if the tool server serves anything.
func (s sentServer) servesNothing(t testing.TB) {
	t.Helper()
	dirs, err := s.folders(t)
	require.NoError(t, err)
	require.Empty(t, dirs)
}

func dirsOf(all workspace.Roots) (dirs []string) {
	for _, dir := range all.All() {
		dirs = append(dirs, dir.String())
	}
	return dirs
}

// A server found in a root is started by a relay, as the user has allowed, whether or not the relay
// tells it the roots.
//
// Clause A25.
func TestFoundServersAreStartedByARelay(t *testing.T) {
	notWithServers(t)
	h := newSystem(t, abilities{}, proxy.Options{Relay: process.Command{Path: "/opt/acp-agent",
		Args: []string{"mcp-relay"}}})
	given := sdk.McpServerStdio{Name: "given", Command: "x", Args: []string{},
		Env: []sdk.EnvVariable{}}
	all := roots(t, 1)
	dir := filepath.Join(all.Cwd().String(), "a dir")
	require.NoError(t, os.Mkdir(dir, 0o700))
	found := sdk.McpServerStdio{Name: "found", Command: "x", Args: []string{"--a"},
		Env: []sdk.EnvVariable{{Name: "N", Value: "v"}}, Meta: backend.FoundMeta(dir)}
	open := client.Setup{Roots: all, MCPServers: []sdk.McpServer{{Stdio: &given}, {Stdio: &found}}}
	v := h.connect()
	_, err := v.NewSession(t.Context(), open)
	require.NoError(t, err)
	sent := h.sentServers("session/new")
	require.JSONEq(t, string(backend.Encode(given)), string(sent[0]))
	require.JSONEq(t, `{"name":"found","command":"/opt/acp-agent","args":["mcp-relay","--found-in",`+
		string(backend.Encode(dir))+`,"--env","N","--","x","--a"],"env":[{"name":"N","value":"v"}]}`,
		string(sent[1]))

	// Its folder was replaced after the user was asked.
	require.NoError(t, os.Remove(dir))
	require.NoError(t, os.Symlink(t.TempDir(), dir))
	_, err = v.NewSession(t.Context(), open)
	require.ErrorContains(t, err, "outside the session's folders")
}

// Clause P1.
func TestToolServer(t *testing.T) {
	h, v := connected(t, abilities{Load: true, Resume: true, Fork: true},
		withTools(t, profiles.Profile{}))
	all := roots(t, 2)
	s := v.open(all)
	given := h.servers("session/new")
	require.Len(t, given, 1)
	require.Equal(t, "acp_agent_roots", given[0].Name)
	require.Equal(t, "/opt/acp-agent", given[0].Command)
	require.Equal(t, []string{"mcp", "--read-only", "--roots-from"}, given[0].Args[:3])
	require.Len(t, given[0].Args, 4, "A24: it has no folders of its own")
	given[0].serves(t, all)
	v.prompt(s.ID, "one")
	require.Contains(t, h.lastPrompt()[1], `use the tools of the MCP server "acp_agent_roots", if you have them: `)

	t.Run("A24/with other roots", func(t *testing.T) {
		fewer := with(all, all.At(2).String())
		v.load(s.ID, fewer)
		require.Equal(t, given, h.servers("session/load"), "the agent may keep its server")
		given[0].serves(t, fewer)
		_, err := v.ResumeSession(t.Context(), s.ID, client.Setup{Roots: all})
		require.NoError(t, err)
		require.Equal(t, given, h.servers("session/resume"))
		given[0].serves(t, all)
		fork, err := v.ForkSession(t.Context(), s.ID, client.Setup{Roots: fewer})
		require.NoError(t, err)
		forked := h.servers("session/fork")[0]
		forked.serves(t, fewer)
		given[0].serves(t, all)
		require.NoError(t, v.CloseSession(t.Context(), fork.ID))
		_, err = forked.folders(t)
		require.ErrorContains(t, err, "open it with acp-agent to use them again")
	})
	t.Run("A24/without other roots", func(t *testing.T) {
		_, err := v.ResumeSession(t.Context(), s.ID, client.Setup{Roots: with(all)})
		require.NoError(t, err)
		require.Equal(t, given, h.servers("session/resume"),
			"an agent may keep a server that is not named")
		given[0].servesNothing(t)
		v.prompt(s.ID, "two")
		require.Contains(t, h.lastPrompt()[1],
			"What you were told about the folders of this session no longer applies.")
		v.disconnect()
		_, err = given[0].folders(t)
		require.ErrorContains(t, err, "open it with acp-agent to use them again")

		v = h.connect()
		v.load(s.ID, with(all))
		again := h.servers("session/load")
		require.Len(t, again, 1, "another process of the agent may keep it too")
		again[0].servesNothing(t)
		v.load(s.ID, all)
		again[0].serves(t, all)
	})
	t.Run("A24/never sent", func(t *testing.T) {
		s := v.open(with(all))
		require.Empty(t, h.servers("session/new"))
		v.prompt(s.ID, "one")
		v.load(s.ID, with(all))
		require.Empty(t, h.servers("session/load"))
	})
}

// Our tool server is a process of its own, to which the session's rules go with each call.
//
// Clause R5.
func TestToolServerHasTheRules(t *testing.T) {
	h := newSystem(t, abilities{}, withTools(t, profiles.Profile{}))
	h.rules = &acp.Permissions{Allow: []string{"read"}, Ask: []string{"edit x"}, Deny: []string{"read **/.env"}}
	v := h.connect()
	v.open(roots(t, 2))
	server := h.servers("session/new")[0]
	rules := func() (mcprelay.Rules, error) {
		return mcprelay.SessionRules(t.Context(), server.Args[len(server.Args)-1], server.Env[0].Value)
	}
	got, err := rules()
	require.NoError(t, err)
	require.Equal(t, h.rules.Ask, got.Ask)
	require.Equal(t, h.rules.Deny, got.Deny)
	require.Len(t, got.Folders, 3, "against which the rules are checked")
	v.disconnect()
	_, err = rules()
	require.ErrorContains(t, err, "not open")
}

// An agent that refuses MCP servers has several folders without our own server, and the user learns
// of it once.
//
// Clause P1.
func TestToolServerThatIsRefused(t *testing.T) {
	const notice = "does not take acp-agent's own MCP server"
	t.Run("ours", func(t *testing.T) {
		h, v := connected(t, abilities{NoServers: true, Load: true, SystemPrompt: true},
			withTools(t, profiles.Profile{}))
		all := roots(t, 2)
		s := v.open(all)
		_, err := v.Prompt(t.Context(), s.ID, sdk.TextBlock("one"))
		require.NoError(t, err)
		v.until(notice)
		told := strings.Join(append(h.systemPrompts("session/new"), h.lastPrompt()...), "")
		told = told[strings.LastIndex(told, "several folders"):]
		require.Contains(t, told, all.At(1).String())
		require.NotContains(t, told, "MCP server")

		v.load(s.ID, all)
		require.Equal(t, "agent N:one+two", v.prompt(s.ID, "two"), "it keeps its session")

		s = v.open(with(all))
		v.prompt(s.ID, "three")
		v.disconnect()
		v = h.connect()
		v.load(s.ID, all)
		v.until(notice)
		require.Equal(t, "agent N:three+four", v.prompt(s.ID, "four"))
	})

	t.Run("the client's own", func(t *testing.T) {
		notWithServers(t)
		h := newSystem(t, abilities{NoServers: true}, withTools(t, profiles.Profile{}))
		given := sdk.McpServerStdio{Name: "given", Command: "x", Args: []string{},
			Env: []sdk.EnvVariable{}}
		_, err := h.connect().NewSession(t.Context(), client.Setup{Roots: roots(t, 1),
			MCPServers: []sdk.McpServer{{Stdio: &given}}})
		require.ErrorContains(t, err, "Internal error")
		require.Len(t, h.servers("session/new"), 1)
	})
}

// A server must not keep roots that were removed, even if the child cannot load or resume.
//
// Clause A24.
func TestToolServerWithOtherRoots(t *testing.T) {
	h, v := connected(t, abilities{}, withTools(t, profiles.Profile{}))
	all := roots(t, 2)
	s := v.open(with(all))
	v.prompt(s.ID, "one")
	v.load(s.ID, all)
	require.Equal(t, "agent N:~one+two", v.prompt(s.ID, "two"),
		"only a new session is given the server")
	given := h.servers("session/new")
	require.Len(t, given, 1)
	v.load(s.ID, with(all, all.At(2).String()))
	given[0].serves(t, with(all, all.At(2).String()))
	v.load(s.ID, with(all))
	given[0].servesNothing(t)
}

// Clause P1.
func TestNoToolServer(t *testing.T) {
	for name, c := range map[string]struct {
		able    abilities
		options proxy.Options
	}{
		"by protocol": {abilities{Roots: true}, withTools(t, profiles.Profile{})},
		"told by protocol": {abilities{Load: true, Roots: true}, withTools(t, profiles.Profile{
			Roots: profiles.Roots{OnlyNew: true}, Context: profiles.Context{ByServer: true}})},
		"by flags":         {abilities{}, withTools(t, profiles.Profile{Roots: profiles.Roots{Flag: "--dir"}})},
		"turned off":       {abilities{}, withTools(t, profiles.Profile{Roots: profiles.Roots{Tools: profiles.ToolsOff}})},
		"no program named": {abilities{}, proxy.Options{}},
		"no directory":     {abilities{}, proxy.Options{RootsTools: rootsTools}},
	} {
		t.Run(name, func(t *testing.T) {
			h, v := connected(t, c.able, c.options)
			s := v.open(roots(t, 2))
			require.Empty(t, h.servers("session/new"))
			v.prompt(s.ID, "one")
			require.NotContains(t, strings.Join(h.lastPrompt(), ""), "MCP server")
		})
	}
}

// Clause P6.
func TestToolServerAfterOthers(t *testing.T) {
	o := withTools(t, profiles.Profile{})
	b := initialized(t, plain+opened, o)
	all := roots(t, 1)
	w, err := workspace.Open(t.Context(), all, workspace.Options{})
	require.NoError(t, err)
	defer w.Close()
	params := backend.Raw(fmt.Sprintf(
		`{"cwd":%q,"additionalDirectories":[%q],"mcpServers":[ {"name":"acp_agent_roots",`+
			`"n":1.0} ]}`, all.Cwd(), all.At(1)))
	s, _, err := b.backend.Open(t.Context(), backend.Activation{Cause: backend.New, Params: params},
		workspaceHost{host{b.client}, w})
	require.NoError(t, err)
	defer s.Close(t.Context())
	received := b.received("session/new")[0]
	require.Contains(t, received,
		`"mcpServers":[ {"name":"acp_agent_roots","n":1.0} ,{"args":["mcp","--read-only",`+
			`"--roots-from",`)
	require.Contains(t, received, `"name":"acp_agent_roots_2"`)
}

// Clause A30.
func TestWritingTools(t *testing.T) {
	for name, c := range map[string]struct {
		profile profiles.Profile
		args    string
		told    string
	}{
		"not known to ask": {profiles.Profile{}, "mcp --read-only --roots-from",
			"use the tools of the MCP server \"acp_agent_roots\", if you have them: " +
				"it lists, reads and searches files in all of them"},
		"known to ask": {profiles.Profile{Roots: profiles.Roots{AskEnv: []string{"ACP_PROXY_TEST_ASK=ask"}}},
			"mcp --roots-from", "writes and edits files in all of them"},
		"as its user allows it": {profiles.Profile{Roots: profiles.Roots{Tools: profiles.ToolsWrite}}, "mcp --roots-from",
			"writes and edits files in all of them"},
	} {
		t.Run(name, func(t *testing.T) {
			h, v := connected(t, abilities{}, withTools(t, c.profile))
			s := v.open(roots(t, 1))
			require.Contains(t, strings.Join(h.servers("session/new")[0].Args, " "), c.args)
			v.prompt(s.ID, "one")
			require.Contains(t, h.lastPrompt()[1], c.told)
		})
	}
}

// Clause A30.
func TestAskEnv(t *testing.T) {
	const name = "ACP_PROXY_TEST_ASK"
	ask := profiles.Profile{Roots: profiles.Roots{AskEnv: []string{name + "=ask"}}}
	for _, c := range []struct {
		what    string
		options proxy.Options
		own     []string
		want    string
	}{
		{"as its profile says", withTools(t, ask), nil, "ask"},
		{"but as its user says", withTools(t, ask), []string{name + "=allow"}, "allow"},
		{"and without tools as ever", proxy.Options{Profile: ask}, nil, ""},
	} {
		t.Run(c.what, func(t *testing.T) {
			b := start(t, "await initialize\n"+
				`answer initialize {"protocolVersion":1,"agentInfo":{"name":"$env:`+name+`$"}}`+
				"\n", c.options)
			b.backend = proxy.New(process.Command{Path: b.command.Path, Name: b.command.Name,
				Env: append(b.command.Env, c.own...)}, c.options)
			info, err := b.backend.Initialize(t.Context(), backend.Raw(`{}`), b.client)
			require.NoError(t, err)
			require.Contains(t, string(info.Initialize), `"name":"`+c.want+`"`)
		})
	}
}

// withRelay returns options with the relay turned on.
func withRelay(t testing.TB) proxy.Options {
	t.Helper()
	return proxy.Options{
		Profile: profiles.Profile{Roots: profiles.Roots{Relay: true}}, RelayDir: filepath.Join(dirtest.Short(t), "relay"),
		Relay: process.Command{Path: "/opt/acp-agent", Args: []string{"mcp-relay"}},
	}
}

// fakeRelay receives the roots as the relay of a server does.
type fakeRelay struct {
	t  testing.TB
	in *bufio.Reader
}

func (s sentServer) hear(t testing.TB) fakeRelay {
	t.Helper()
	require.Equal(t, []string{"mcp-relay", "--roots-from"}, s.Args[:2])
	secret := s.Env[len(s.Env)-1]
	require.Equal(t, "ACP_AGENT_RELAY_SECRET", secret.Name)
	conn, err := net.Dial("unix", s.Args[2])
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
	_, err = io.WriteString(conn, secret.Value+"\n")
	require.NoError(t, err)
	return fakeRelay{t, bufio.NewReader(conn)}
}

// next returns the directories that it is told next.
func (h fakeRelay) next() (dirs []string) {
	h.t.Helper()
	line, err := h.in.ReadBytes('\n')
	require.NoError(h.t, err)
	var list struct{ Roots []struct{ URI string } }
	require.NoError(h.t, json.Unmarshal(line, &list))
	for _, r := range list.Roots {
		dirs = append(dirs, r.URI)
	}
	return dirs
}

// ended waits until the session has ended.
func (h fakeRelay) ended() {
	h.t.Helper()
	_, err := h.in.ReadByte()
	require.Error(h.t, err)
	require.NotErrorIs(h.t, err, os.ErrDeadlineExceeded)
}

// urisOf returns roots as relays are told them.
func urisOf(t testing.TB, all workspace.Roots) (uris []string) {
	t.Helper()
	for _, dir := range all.All() {
		real, err := filepath.EvalSymlinks(dir.String())
		require.NoError(t, err)
		uris = append(uris, mcptest.URIs(t, real)...)
	}
	return uris
}

var filesServer = sdk.McpServer{Stdio: &sdk.McpServerStdio{
	Name: "files", Command: "npx", Args: []string{"-y", "files"},
	Env: []sdk.EnvVariable{{Name: "A", Value: "b"}},
}}

// Clause M1.
func TestRelays(t *testing.T) {
	notWithServers(t)
	h, v := connected(t, abilities{Load: true, Resume: true, Fork: true, Roots: true}, withRelay(t))
	all := roots(t, 2)
	servers := []sdk.McpServer{filesServer}
	s, err := v.NewSession(t.Context(), client.Setup{Roots: all, MCPServers: servers})
	require.NoError(t, err)
	sent := h.sentServers("session/new")
	require.Len(t, sent, 1)
	files := parsed(t, sent[0])
	require.Equal(t, "files", files.Name)
	require.Equal(t, "/opt/acp-agent", files.Command)
	require.Equal(t, []string{"--server", "files", "--", "npx", "-y", "files"}, files.Args[3:])
	require.Equal(t, "b", files.Env[0].Value)
	heard := files.hear(t)
	require.Equal(t, urisOf(t, all), heard.next())

	t.Run("M3/after a load and a resume", func(t *testing.T) {
		other := with(all, all.At(2).String(), all.At(1).String())
		_, err = v.LoadSession(t.Context(), s.ID, client.Setup{Roots: other, MCPServers: servers})
		require.NoError(t, err)
		require.Equal(t, sent, h.sentServers("session/load"), "the agent may keep its servers")
		require.Equal(t, urisOf(t, other), heard.next())
		_, err = v.ResumeSession(t.Context(), s.ID,
			client.Setup{Roots: with(all), MCPServers: servers})
		require.NoError(t, err)
		require.Equal(t, urisOf(t, with(all)), heard.next())
	})
	t.Run("A22/each session has its own", func(t *testing.T) {
		_, err := v.ForkSession(t.Context(), s.ID, client.Setup{Roots: all, MCPServers: servers})
		require.NoError(t, err)
		fork := parsed(t, h.sentServers("session/fork")[0])
		require.NotEqual(t, files.Args[2], fork.Args[2])
		require.NotEqual(t, files.Env[1].Value, fork.Env[1].Value)
		require.Equal(t, urisOf(t, all), fork.hear(t).next())
		require.NoError(t, v.CloseSession(t.Context(), s.ID))
		heard.ended()
	})
	v.disconnect()
	left, err := os.ReadDir(h.options.RelayDir)
	require.NoError(t, err)
	require.Empty(t, left)
}

// Clause P6.
func TestNoRelay(t *testing.T) {
	notWithServers(t)
	on := withRelay(t)
	off, nowhere, none := on, on, on
	off.Profile.Roots.Relay, nowhere.RelayDir, none.Relay = false, "", process.Command{}
	file := on
	file.RelayDir = filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file.RelayDir, nil, 0o600))
	for name, o := range map[string]proxy.Options{"off": off, "no directory": nowhere,
		"no program": none, "no socket": file} {
		t.Run(name, func(t *testing.T) {
			h, v := connected(t, abilities{}, o)
			_, err := v.NewSession(t.Context(),
				client.Setup{Roots: roots(t, 1), MCPServers: []sdk.McpServer{filesServer}})
			require.NoError(t, err)
			require.JSONEq(t, `{"name":"files","command":"npx","args":["-y","files"],`+
				`"env":[{"name":"A","value":"b"}]}`, string(h.sentServers("session/new")[0]))
		})
	}
}

// workspaceHost is a host with a workspace.
type workspaceHost struct {
	host
	workspace *workspace.Workspace
}

func (p workspaceHost) Workspace() *workspace.Workspace { return p.workspace }

// Clause P6.
func TestNoRelayForOtherServers(t *testing.T) {
	others := []string{
		`{"name":"web","type":"http","url":"http://127.0.0.1:1", "headers":[]}`,
		`{"name":"w","type":"sse","url":"u","command":"c"}`,
		`{"name":"none"}`, `{"name":"empty","command":""}`, `{"name":"odd","command":7}`, `null`,
		`"text"`, `{"name":"odd args","command":"c","args":"a"}`,
	}
	all := roots(t, 0)
	w, err := workspace.Open(t.Context(), all, workspace.Options{})
	require.NoError(t, err)
	defer w.Close()
	b := initialized(t, plain+opened, withRelay(t))
	params := `{"cwd":"/a","mcpServers":[` + strings.Join(others, " , ") +
		`,{ "name":"p","n":1.0,"command":"c","env":{}},{"command":"c","name":"q","type":"stdio",` +
		`"n":1.0}]}`
	s, _, err := b.backend.Open(t.Context(),
		backend.Activation{Cause: backend.New, Params: backend.Raw(params)},
		workspaceHost{host{b.client}, w})
	require.NoError(t, err)
	require.NoError(t, s.Close(t.Context()))
	var m struct {
		Params struct{ McpServers []json.RawMessage }
	}
	require.NoError(t, json.Unmarshal([]byte(b.received("session/new")[0]), &m))
	for i, other := range append(others, `{ "name":"p","n":1.0,"command":"c","env":{}}`) {
		require.Equal(t, other, string(m.Params.McpServers[i]))
	}
	last := string(m.Params.McpServers[len(others)+1])
	require.Contains(t, last, `"name":"q","type":"stdio","n":1.0`)
	require.Equal(t, []string{"--server", "q", "--", "c"},
		parsed(t, json.RawMessage(last)).Args[3:])
}

// opensWith opens roots in a session that replaces previous, nil for none.
func (b *proxyTest) opensWith(
	all workspace.Roots, cause backend.Cause, previous backend.Session,
) (backend.Session, error) {
	b.t.Helper()
	w, err := workspace.Open(b.t.Context(), all, workspace.Options{})
	require.NoError(b.t, err)
	b.t.Cleanup(func() { _ = w.Close() })
	params, err := json.Marshal(map[string]any{"cwd": all.Cwd(),
		"additionalDirectories": all.Additional(), "mcpServers": []any{
			map[string]any{"name": "p", "command": "c", "args": []string{}, "env": []string{}},
		}})
	require.NoError(b.t, err)
	s, _, err := b.backend.Open(b.t.Context(),
		backend.Activation{Cause: cause, Params: params, Previous: previous},
		workspaceHost{host{b.client}, w})
	return s, err
}

// Clause A12.
func TestRelaysAfterFailedLoad(t *testing.T) {
	o := withRelay(t)
	b := initialized(t, plain+opened+openedAgain, o)
	all := roots(t, 1)
	before, err := b.opensWith(all, backend.New, nil)
	require.NoError(t, err)
	entries, err := os.ReadDir(o.RelayDir)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	lines := b.record.Lines(t)
	var m struct {
		Params struct{ McpServers []json.RawMessage }
	}
	require.NoError(t, json.Unmarshal([]byte(lines[len(lines)-1]), &m))
	heard := parsed(t, m.Params.McpServers[0]).hear(t)
	require.Equal(t, urisOf(t, all), heard.next())

	after, err := b.opensWith(with(all), backend.Load, before)
	require.NoError(t, err)
	require.Equal(t, urisOf(t, with(all)), heard.next())
	require.NoError(t, after.Close(t.Context()), "storing it failed")
	require.Equal(t, urisOf(t, all), heard.next())
	require.NoError(t, before.Close(t.Context()))
	heard.ended()
}

func TestNoSocketAfterFailedNew(t *testing.T) {
	o := withRelay(t)
	b := initialized(t, plain+"await session/new\n"+
		`refuse session/new {"code":-32000,"message":"no"}`+"\n", o)
	_, err := b.opensWith(roots(t, 0), backend.New, nil)
	require.ErrorContains(t, err, "no")
	entries, err := os.ReadDir(o.RelayDir)
	require.NoError(t, err)
	require.Empty(t, entries)
}
