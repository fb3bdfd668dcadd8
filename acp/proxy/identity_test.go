package proxy_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/proxy"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// Clause A31.
func TestOwner(t *testing.T) {
	for _, c := range []struct{ command, want string }{
		// known agents
		{"opencode|acp", "opencode"},
		{"opencode|acp|--print-logs", "opencode"},
		{"/usr/local/bin/opencode|--pure|acp", "opencode"},
		{"opencode.CMD|acp", "opencode"},
		{"gemini|--debug|--acp", "gemini"},
		{"claude-agent-acp", "claude"},
		{"claude-code-acp|--verbose", "claude"},
		{"npx|-y|@zed-industries/claude-code-acp@0.16.2", "claude"},
		{"npx|-y|opencode-ai@1.2.3|acp", "opencode"},
		{"npx|--yes|--package=@google/gemini-cli|gemini|--acp", "gemini"},
		{"npx|-p|@google/gemini-cli@1|--|gemini", "gemini"},
		{"npm|exec|--yes|--|@google/gemini-cli|--acp", "gemini"},
		{"bunx|@google/gemini-cli|--acp", "gemini"},
		{"bun|x|@google/gemini-cli|--acp", "gemini"},
		{"pnpm|dlx|opencode-ai|acp", "opencode"},
		{"yarn|dlx|opencode-ai@latest|acp", "opencode"},
		{"node|/x/node_modules/@agentclientprotocol/claude-agent-acp/dist/index.js", "claude"},
		{"node|--import|/a.js|--enable-source-maps|/x/bundle/gemini.js|--acp", "gemini"},
		// launchers
		{"env|-u|A|B=c|PATH=/x y|opencode|acp", "opencode"},
		{"/usr/bin/env|--|opencode|acp", "opencode"},
		{"env|-S|X=1 opencode acp", "opencode"},
		{"nice|-n|10|ionice|-c|3|opencode|acp", "opencode"},
		{"timeout|-s|KILL|1h|opencode|acp", "opencode"},
		{"timeout|--signal=KILL|1h|opencode", "opencode"},
		{"nohup|stdbuf|-oL|-e|0|opencode|acp", "opencode"},
		{"sudo|-u|me|opencode|acp", "opencode"},
		{"sh|-c|opencode acp", "opencode"},
		{"bash|-lc|cd '/a b' && export X=1; exec \"$HOME/bin/opencode\" acp 2> \"/tmp/a b\"", "opencode"},
		{"bash|-c|X=1 npx -y opencode-ai acp 2>/dev/null", "opencode"},
		{"cmd.exe|/c|opencode.cmd|acp", "opencode"},
		{"direnv|exec|.|opencode|acp", "opencode"},
		{"op|run|--env-file|my agents|--|opencode|acp", "opencode"},
		{"mise|exec|node@22|--|opencode|acp", "opencode"},
		{"mise|x|--|npx|-y|opencode-ai|acp", "opencode"},
		{"doppler|run|-p|x|--|env|A=b|opencode|acp", "opencode"},
		{"aws-vault|exec|work|--|opencode|acp", "opencode"},
		{"nix|run|--impure|nixpkgs#opencode|--|acp", "opencode"},
		{"nix|develop|/x|-c|opencode|acp", "opencode"},
		{"nix|shell|nixpkgs#nodejs|--command|npx|opencode-ai|acp", "opencode"},
		{"firejail|--noprofile|opencode|acp", "opencode"},
		{"proxychains4|-q|-f|/x.conf|opencode|acp", "opencode"},
		{"caffeinate|-i|-t|60|opencode|acp", "opencode"},
		{"script|-q|-c|opencode acp|/dev/null", "opencode"},
		{"powershell.exe|-NoProfile|-Command|opencode acp", "opencode"},
		{"asdf|exec|opencode|acp", "opencode"},
		{"some-wrapper|--verbose|x|--|opencode|acp", "opencode"},
		{"some-wrapper|--|npx|-y|@google/gemini-cli|--acp", "gemini"},
		{"acp-agent|--allow|read|--|opencode|acp", "opencode"},
		{"acp-agent|--agent|opencode", "opencode"},
		{"/opt/acp-agent|--agent=opencode", "opencode"},
		// others
		{"/opt/my agents/it's.EXE|", `'it'\''s'`},
		{".cmd", ".cmd"},
		{"npx|@scope/agent@2|--model|a b", "@scope/agent"},
		{"python|-u|/a/server.py|--flag", "a/server"},
		{"python|/b c/src/agent.py", "'b c/agent'"},
		{"sh|-c|exec /opt/thing/agent --acp", "thing/agent"},
		{"/opt/thing/agent|--acp", "thing/agent"}, // as through a shell
		{"/home/me/other/agent|--acp", "other/agent"},
		{"/home/me/my agent/run.sh", "'my agent/run'"},
		{"agent|--acp", "agent"},
		{"node|/x/node_modules/thing/dist/server.js", "thing"},
		{"env|--|X=1|other-agent", "other-agent"},
		{"python3.12|-m|my_agent|acp", "my_agent"},
		{"./server.py", "server.py"},
		{"uvx|--from|git+https://x.example/y|my-agent", "my-agent"},
		{"uvx|my-agent==1.2", "my-agent"},
		{"node|/opt/thing/dist/index.js", "thing"},
		{"sh|/opt/start-it.sh|x", "start-it"},
		{"gemini|--acp|--|opencode|acp", "gemini"},
		{"some-agent|--|opencode", "some-agent"}, // which does not speak ACP then
		{"some-agent|--|other|acp", "some-agent"},
		{"nix|run|nixpkgs#my-agent", "my-agent"},
		// what does not tell stays as it is
		{"nix|run|github:some/where", "nix run github:some/where"},
		{"mise|run|agent", "mise run agent"},
		{"op|run|opencode|acp", "op run opencode acp"},
		{"docker|run|-i|image|--|opencode|acp", "docker run -i image -- opencode acp"},
		{"node|index.js", "node index.js"},
		{"node|server.js", "node server.js"},
		{"python|agent.py|--debug", "python agent.py --debug"},
		{"docker|run|-i|image/one", "docker run -i image/one"},
		{"ssh|host|opencode acp", "ssh host 'opencode acp'"},
		{"/bin/sh|-c|a | b", "sh -c 'a | b'"},
		{"sh|-c|$AGENT acp", "sh -c '$AGENT acp'"},
		{"sh|-c|a; b", "sh -c 'a; b'"},
		{"sh|-c|$(which opencode) acp", "sh -c '$(which opencode) acp'"},
		{"npm|start", "npm start"},
		{"env", "env"},
		{"timeout|5", "timeout 5"},
	} {
		words := strings.Split(c.command, "|")
		if strings.Contains(c.command, " | ") {
			words = []string{"/bin/sh", "-c", "a | b"}
		}
		command := proxy.Command{Path: words[0], Args: words[1:]}
		owner := proxy.Owner(command, proxy.Profile{})
		require.Equal(t, sessionstore.Agent{Kind: proxy.Kind, Profile: c.want}, owner, c.command)
	}
}

func TestMatchProfile(t *testing.T) {
	configured := append([]proxy.Profile{
		{Name: "a-work", Command: "opencode", Args: []string{"acp", "--pure"}, Identity: "a-work"},
		{Name: "mine", Command: "python", Args: []string{"/opt/mine/server.py"}},
		{Name: "wrapped", Command: "sh", Args: []string{"-c", "exec other acp"}},
	}, proxy.KnownProfiles()...)
	for _, c := range []struct{ command, profile, identity string }{
		{"opencode|acp", "opencode", "opencode"},
		{"timeout|5|python|/opt/mine/server.py", "mine", "mine"},
		{"timeout|5|python|/elsewhere/server.py", "", "elsewhere/server"},
		{"python|other.py", "wrapped", "wrapped"},
		{"python|third.py", "", "third"},
		{"cat|opencode-ai", "", "cat"},
		{"claude-code-acp", "claude-code-acp", "claude"},
	} {
		words := strings.Split(c.command, "|")
		command := proxy.Command{Path: words[0], Args: words[1:]}
		p, ok := proxy.MatchProfile(configured, command)
		require.Equal(t, c.profile != "", ok, c.command)
		require.Equal(t, c.profile, p.Name, c.command)
		require.Equal(t, c.identity, proxy.Identify(configured, p, command).Identity, c.command)
	}
	_, ok := proxy.MatchProfile(proxy.KnownProfiles(), proxy.Command{})
	require.False(t, ok)
}
