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
		{"bunx|@google/gemini-cli|--acp", "gemini"},
		{"node|/x/node_modules/@agentclientprotocol/claude-agent-acp/dist/index.js", "claude"},
		{"env|opencode|acp", "opencode"},
		{"/usr/bin/env|npx|opencode-ai|acp", "opencode"},
		{"node|/x/node_modules/.bin/opencode|acp", "node /x/node_modules/.bin/opencode acp"},
		{"npx|-y|@moonshot-ai/kimi-code@2.1.0|acp", "kimi"},
		{"uvx|kimi-cli|acp", "kimi"},
		// others
		{"/opt/my agents/it's.EXE", `'it'\''s'`},
		{".cmd", ".cmd"},
		{"my-agent|acp|--debug|-v", "my-agent"},
		{"my-agent|--model|a b", "my-agent --model 'a b'"},
		{"my-agent|--model=a", "my-agent --model=a"},
		{"npx|@scope/agent@2|--acp", "@scope/agent"},
		{"npx|@scope/agent@2|serve", "@scope/agent serve"},
		{"bunx|@scope/agent@3|serve", "@scope/agent serve"},
		{"uvx|my-agent==1.2", "my-agent"},
		{"node|/x/node_modules/thing/dist/server.js", "thing"},
		{"/opt/thing/agent|--acp", "/opt/thing/agent"},
		{"/home/me/my agent/run.sh", "'/home/me/my agent/run.sh'"},
		{"./server.py", "./server.py"},
		{"gemini|--acp|--|opencode|acp", "gemini"},
		// two commands that start others never have the same sessions
		{"env|A=1|opencode|acp", "env A=1 opencode acp"},
		{"sh|-c|opencode acp", "sh -c 'opencode acp'"},
		{"npx|-p|@scope/tools|one", "npx -p @scope/tools one"},
		{"npm|exec|opencode-ai|acp", "npm exec opencode-ai acp"},
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
		{Name: "one", Start: profiles.Start{Command: "volta", Args: []string{"run", "one"}}},
		{Name: "one-more", Start: profiles.Start{Command: "volta", Args: []string{"run", "one", "more"}}},
	}, profiles.Known()...)
	for _, c := range []struct{ command, profile, identity string }{
		{"opencode|acp", "opencode", "opencode"},
		{"opencode|acp|--pure", "opencode", "opencode"},
		{"python|/opt/mine/server.py|--debug", "mine", "mine"},
		{"python|/elsewhere/server.py", "", "python /elsewhere/server.py"},
		{"volta|run|gemini|--acp", "", "volta run gemini --acp"},
		{"volta|run|one|x", "one", "one"},
		{"volta|run|one|more", "one-more", "one-more"},
		{"volta|run|two", "", "volta run two"},
		{"cat|opencode-ai", "", "cat opencode-ai"},
		{"claude-code-acp", "claude-code-acp", "claude"},
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
