package proxy_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/acp/proxy"
	"github.com/acp-agent/acp-agent/acp/proxy/profile"
	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/workspace"
)

// servers are the MCP servers that the agent was sent with its latest request of a method.
func (h *house) servers(method string) (servers []struct {
	Name, Command string
	Args          []string
	Env           []struct{}
}) {
	var raw json.RawMessage
	for _, r := range h.received() {
		if r.method == method {
			var p struct{ McpServers json.RawMessage }
			require.NoError(h.t, json.Unmarshal([]byte(r.params), &p))
			raw = p.McpServers
		}
	}
	if raw != nil {
		require.NoError(h.t, json.Unmarshal(raw, &servers))
	}
	return servers
}

var rootsTools = process.Command{Path: "/opt/acp-agent", Args: []string{"mcp"}}

func rootArgs(all workspace.Roots) []string {
	args := []string{"mcp", "--read-only"}
	for _, dir := range all.All() {
		args = append(args, "--root", dir.String())
	}
	return args
}

func TestP1_AChildThatIsToldOfItsRootsHasToolsForThem(t *testing.T) {
	h := newHouse(t, abilities{Load: true, Resume: true, Fork: true}, proxy.Options{RootsTools: rootsTools})
	all := roots(t, 2)
	v := h.enter()
	s, err := v.NewSession(t.Context(), client.Setup{Roots: all})
	require.NoError(t, err)
	given := h.servers("session/new")
	require.Len(t, given, 1)
	require.Equal(t, "acp_agent_roots", given[0].Name)
	require.Equal(t, "/opt/acp-agent", given[0].Command)
	require.Equal(t, rootArgs(all), given[0].Args, "A20: cwd first")
	require.NotNil(t, given[0].Env)
	v.say(s.ID, "one")
	require.Contains(t, h.lastPrompt()[0], `"acp_agent_roots"`)

	t.Run("A24/that follow the roots", func(t *testing.T) {
		fewer := with(all, all.At(2).String())
		_, err := v.LoadSession(t.Context(), s.ID, client.Setup{Roots: fewer})
		require.NoError(t, err)
		require.Equal(t, rootArgs(fewer), h.servers("session/load")[0].Args)
		_, err = v.ResumeSession(t.Context(), s.ID, client.Setup{Roots: all})
		require.NoError(t, err)
		require.Equal(t, rootArgs(all), h.servers("session/resume")[0].Args)
		_, err = v.ForkSession(t.Context(), s.ID, client.Setup{Roots: fewer})
		require.NoError(t, err)
		require.Equal(t, rootArgs(fewer), h.servers("session/fork")[0].Args)
		_, err = v.ResumeSession(t.Context(), s.ID, client.Setup{Roots: with(all)})
		require.NoError(t, err)
		require.Empty(t, h.servers("session/resume"), "one root needs none")
	})
}

// A server of roots that are taken away must not live on in a child that can open nothing anew.
func TestA24_AChildThatOpensNothingAnewGetsANewSessionForOtherRoots(t *testing.T) {
	h := newHouse(t, abilities{}, proxy.Options{RootsTools: rootsTools})
	all := roots(t, 2)
	v := h.enter()
	s, err := v.NewSession(t.Context(), client.Setup{Roots: all})
	require.NoError(t, err)
	v.say(s.ID, "one")
	_, err = v.LoadSession(t.Context(), s.ID, client.Setup{Roots: all})
	require.NoError(t, err)
	require.Equal(t, "agent N:one+two", v.say(s.ID, "two"), "the same roots need none")
	_, err = v.LoadSession(t.Context(), s.ID, client.Setup{Roots: with(all)})
	require.NoError(t, err)
	require.Empty(t, h.servers("session/new"))
	require.Equal(t, "agent N:~one+~two+three", v.say(s.ID, "three"))
}

func TestP1_ToolsAreForChildrenThatTakeRootsNoOtherWay(t *testing.T) {
	for name, c := range map[string]struct {
		able    abilities
		options proxy.Options
		roots   int
	}{
		"by protocol":      {abilities{Roots: true}, proxy.Options{RootsTools: rootsTools}, 2},
		"by flags":         {abilities{}, proxy.Options{RootsTools: rootsTools, Profile: profile.Profile{Flag: "--dir"}}, 2},
		"turned off":       {abilities{}, proxy.Options{RootsTools: rootsTools, Profile: profile.Profile{Tools: profile.WithoutTools}}, 2},
		"one root":         {abilities{}, proxy.Options{RootsTools: rootsTools}, 0},
		"no program named": {abilities{}, proxy.Options{}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, c.able, c.options)
			v := h.enter()
			s, err := v.NewSession(t.Context(), client.Setup{Roots: roots(t, c.roots)})
			require.NoError(t, err)
			require.Empty(t, h.servers("session/new"))
			v.say(s.ID, "one")
			require.NotContains(t, strings.Join(h.lastPrompt(), ""), "MCP server")
		})
	}
}

func TestP6_TheClientsServersStayAsTheyAre(t *testing.T) {
	b := initialized(t, plain+opened, proxy.Options{RootsTools: rootsTools})
	b.openWith(`{"cwd":"/a","additionalDirectories":["/b"],"mcpServers":[ {"name":"acp_agent_roots","n":1.0} ]}`)
	require.Equal(t, newRequest(`{"cwd":"/a","mcpServers":[ {"name":"acp_agent_roots","n":1.0} ,`+
		`{"name":"acp_agent_roots_2","command":"/opt/acp-agent","args":["mcp","--read-only","--root","/a","--root","/b"],"env":[]}]}`), b.received("session/new"))
}

func TestA30_OnlyAChildThatIsKnownToAskHasToolsThatWrite(t *testing.T) {
	for name, c := range map[string]struct {
		profile profile.Profile
		args    string
		told    string
	}{
		"not known to ask":      {profile.Profile{}, "mcp --read-only --root", "it lists, reads and searches files there"},
		"known to ask":          {profile.Profile{AskEnv: []string{"ACP_PROXY_TEST_ASK=ask"}}, "mcp --root", "writes and edits files there"},
		"as its user allows it": {profile.Profile{Tools: profile.WithWritingTools}, "mcp --root", "writes and edits files there"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, abilities{}, proxy.Options{RootsTools: rootsTools, Profile: c.profile})
			v := h.enter()
			s, err := v.NewSession(t.Context(), client.Setup{Roots: roots(t, 1)})
			require.NoError(t, err)
			require.Contains(t, strings.Join(h.servers("session/new")[0].Args, " "), c.args)
			v.say(s.ID, "one")
			require.Contains(t, h.lastPrompt()[0], c.told)
		})
	}
}

func TestA30_AChildAsksBeforeItWritesByTheTools(t *testing.T) {
	const name = "ACP_PROXY_TEST_ASK"
	ask := profile.Profile{AskEnv: []string{name + "=ask"}}
	for _, c := range []struct {
		what    string
		options proxy.Options
		own     []string
		want    string
	}{
		{"as its profile says", proxy.Options{Profile: ask, RootsTools: rootsTools}, nil, "ask"},
		{"but as its user says", proxy.Options{Profile: ask, RootsTools: rootsTools}, []string{name + "=allow"}, "allow"},
		{"and without tools as ever", proxy.Options{Profile: ask}, nil, ""},
	} {
		t.Run(c.what, func(t *testing.T) {
			b := start(t, "await initialize\n"+`send {"jsonrpc":"2.0","id":$initialize$,"result":{"protocolVersion":1,"agentInfo":{"name":"$env:`+name+`$"}}}`+"\n", c.options)
			b.runtime = proxy.New(process.Command{Path: b.command.Path, Name: b.command.Name, Env: append(b.command.Env, c.own...)}, c.options)
			info, err := b.runtime.Initialize(t.Context(), backend.Raw(`{}`), b.editor)
			require.NoError(t, err)
			require.Contains(t, string(info.Initialize), `"name":"`+c.want+`"`)
		})
	}
}
