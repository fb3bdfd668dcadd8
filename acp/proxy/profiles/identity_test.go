package profiles_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/proxy/profiles"
	"github.com/acp-agent/acp-agent/internal/process"
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
		{"node|/x/node_modules/.bin/opencode|acp", "node /x/node_modules/.bin/opencode acp"},
		{"npx|-y|@moonshot-ai/kimi-code@2.1.0|acp", "kimi"},
		{"uvx|kimi-cli|acp", "kimi"},
		{"sh|-c|opencode acp", "opencode"},
		{"/bin/bash|-lc|exec '/opt/my bin/opencode' acp --print-logs", "opencode"},
		{"sh|-c|npx -y opencode-ai acp", "opencode"},
		{"cmd.exe|/c|npx.cmd|-y|opencode-ai|acp", "opencode"},
		// others
		{"/opt/my agents/it's.EXE", `'it'\''s'`},
		{".cmd", ".cmd"},
		{"my-agent|acp|--debug|-v", "my-agent"},
		{"my-agent|--model|a b", "my-agent --model 'a b'"},
		{"my-agent|--model=a", "my-agent --model=a"},
		{"npx|@scope/agent@2|--acp", "@scope/agent"},
		{"npx|@scope/agent@2|serve", "@scope/agent serve"},
		{"bunx|@scope/agent@3|serve", "@scope/agent serve"},
		{"npx|-p|@scope/tools@1|one", "@scope/tools one"},
		{"npx|--package=@scope/tools|two", "@scope/tools two"},
		{"uvx|--from|git+https://x.example/y|my-agent", "git+https://x.example/y my-agent"},
		{"uvx|my-agent==1.2", "my-agent"},
		{"pipx|run|my-agent", "my-agent"},
		{"node|/x/node_modules/thing/dist/server.js", "thing"},
		{"/opt/thing/agent|--acp", "/opt/thing/agent"},
		{"/home/me/my agent/run.sh", "'/home/me/my agent/run.sh'"},
		{"./server.py", "./server.py"},
		{"sh|-c|exec /opt/thing/agent --acp", "/opt/thing/agent"},
		{"gemini|--acp|--|opencode|acp", "gemini"},
		// two commands that start others never have the same sessions
		{"env|-u|A|opencode|acp", "env -u A opencode acp"},
		{"volta|run|one", "volta run one"},
		{"volta|run|two", "volta run two"},
		{"landrun|--ro|/|opencode|acp", "landrun --ro / opencode acp"},
		{"wrapper|-aone", "wrapper -aone"},
		{"wrapper|-1", "wrapper -1"},
		{"wrapper|--", "wrapper --"},
		{"wrapper|--run=one", "wrapper --run=one"},
		{"some-agent|--|opencode|acp", "some-agent -- opencode acp"},
		{"docker|run|-i|image/one", "docker run -i image/one"},
		{"ssh|host|opencode acp", "ssh host 'opencode acp'"},
		{"node|index.js", "node index.js"},
		{"python|-mone", "python -mone"},
		{"python3|/a/server.py|--flag", "python3 /a/server.py --flag"},
		{"node|/opt/wrapper.js|/x/node_modules/thing/dist/server.js",
			"node /opt/wrapper.js /x/node_modules/thing/dist/server.js"},
		{"sh|-c|a; b", "sh -c 'a; b'"},
		{"sh|-c|A=1 opencode acp", "sh -c 'A=1 opencode acp'"},
		{"sh|-c|$AGENT acp", "sh -c '$AGENT acp'"},
		{"sh|-c|exec -a x opencode", "sh -c 'exec -a x opencode'"},
		{"sh|-c|$(which opencode) acp", "sh -c '$(which opencode) acp'"},
		{"sh|-c|opencode 'acp", `sh -c 'opencode '\''acp'`},
		{"sh|-c|", "sh -c ''"},
		{"sh|/opt/start-it.sh", "sh /opt/start-it.sh"},
		{"npm|start", "npm start"},
		{"npm|run|agent", "npm run agent"},
		{"npx", "npx"},
		{"env", "env"},
	} {
		words := strings.Split(c.command, "|")
		command := process.Command{Path: words[0], Args: words[1:]}
		identified := profiles.Identify(profiles.Known(), profiles.Profile{}, command)
		require.Equal(t, c.want, identified.Identity, c.command)
	}
}

func TestMatch(t *testing.T) {
	configured := append([]profiles.Profile{
		{Name: "a-work", Start: profiles.Start{Command: "opencode", Args: []string{"acp", "--pure"}}, Identity: "a-work"},
		{Name: "mine", Start: profiles.Start{Command: "python", Args: []string{"/opt/mine/server.py"}}},
		{Name: "wrapped", Start: profiles.Start{Command: "sh", Args: []string{"-c", "exec other acp"}}},
		{Name: "one", Start: profiles.Start{Command: "volta", Args: []string{"run", "one"}}},
		{Name: "one-more", Start: profiles.Start{Command: "volta", Args: []string{"run", "one", "more"}}},
	}, profiles.Known()...)
	for _, c := range []struct{ command, profile, identity string }{
		{"opencode|acp", "opencode", "opencode"},
		{"opencode|acp|--pure", "opencode", "opencode"},
		{"python|/opt/mine/server.py|--debug", "mine", "mine"},
		{"python|/elsewhere/server.py", "", "python /elsewhere/server.py"},
		{"other|acp|--debug", "wrapped", "wrapped"},
		{"other|serve", "", "other serve"},
		{"volta|run|one|x", "one", "one"},
		{"volta|run|one|more", "one-more", "one-more"},
		{"volta|run|two", "", "volta run two"},
		{"cat|opencode-ai", "", "cat opencode-ai"},
		{"claude-code-acp", "claude-code-acp", "claude"},
		// What is known of an agent holds behind any program, but it may have another account there.
		{"volta|run|gemini|--acp", "gemini", "volta run gemini --acp"},
		{"env|-u|A|npx|-y|@google/gemini-cli|--acp", "gemini", "env -u A npx -y @google/gemini-cli --acp"},
		{"nice|claude-agent-acp", "claude", "nice claude-agent-acp"},
		{"docker|run|-i|image|--|opencode|acp", "opencode", "docker run -i image -- opencode acp"},
		{"some-agent|--|opencode", "", "some-agent -- opencode"}, // which does not speak ACP then
	} {
		words := strings.Split(c.command, "|")
		command := process.Command{Path: words[0], Args: words[1:]}
		p, ok := profiles.Match(configured, command)
		require.Equal(t, c.profile != "", ok, c.command)
		require.Equal(t, c.profile, p.Name, c.command)
		require.Equal(t, c.identity, profiles.Identify(configured, p, command).Identity, c.command)
	}
	_, ok := profiles.Match(profiles.Known(), process.Command{})
	require.False(t, ok)

	// Agents that are configured behind one program are two agents.
	for _, name := range []string{"one", "two"} {
		p := profiles.Profile{Name: name, Start: profiles.Start{Command: "volta", Args: []string{"run", name}}}
		require.Equal(t, name, profiles.Identify(configured, p, p.StartCommand()).Identity)
	}
}
