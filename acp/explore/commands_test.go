package explore

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/backend"
)

func TestOpenAnnouncesTheCommands(t *testing.T) {
	c := open(t, limits{}, plant(t, nil))
	require.Len(t, c.client.updates, 1)
	u := c.client.updates[0]
	require.Equal(t, "available_commands_update", u.Kind)
	var names []string
	for _, command := range u.Commands {
		names = append(names, command["name"].(string))
		require.NotEmpty(t, command["description"])
	}
	require.Equal(t, []string{"roots", "find", "search", "read", "write", "edit",
		"instructions", "skills", "skill", "commands", "mcp", "call", "help"}, names)
	require.Equal(t, map[string]any{"hint": "GLOB"}, u.Commands[1]["input"])
	require.NotContains(t, u.Commands[0], "input")
}

func TestHelp(t *testing.T) {
	c := open(t, limits{}, plant(t, nil))
	for _, text := range []string{"/help", "", "/", " /help me "} {
		a := c.ask(text)
		require.Equal(t, "end_turn", a.stop)
		for _, command := range commands() {
			require.Contains(t, a.text(), command.usage())
		}
	}
}

func TestAnUnknownCommandIsNamedWithTheListOfThose(t *testing.T) {
	a := open(t, limits{}, plant(t, nil)).ask("/fly away")
	require.Equal(t, "end_turn", a.stop)
	require.Contains(t, a.text(), "There is no command `/fly`")
	require.Contains(t, a.text(), "/search REGEXP")
}

func TestACommandWithoutItsInputSaysHow(t *testing.T) {
	c := open(t, limits{}, plant(t, nil))
	for text, usage := range map[string]string{
		"/find": "/find GLOB", "/search ": "/search REGEXP", "/read\n": "/read PATH[:FIRST-LAST]",
		"/write": "/write PATH", "/write a": "/write PATH", "/write\na": "/write PATH", "/write a\n": "/write PATH",
		"/edit": "/edit PATH", "/edit a": "/edit PATH", "/edit a\nb": "/edit PATH", "/edit\nb\n=======\nc": "/edit PATH",
	} {
		a := c.ask(text)
		require.Equal(t, "end_turn", a.stop)
		require.Contains(t, a.text(), usage)
		require.Len(t, a.updates, 1, "no tool call")
	}
}

func TestWhatIsNoPromptIsNotServed(t *testing.T) {
	r := New()
	require.Nil(t, r.Call(t.Context(), "authenticate", nil))
	r.Notify(t.Context(), "anything", nil)

	s := open(t, limits{}, plant(t, nil)).session
	require.Nil(t, s.Call(t.Context(), "session/set_mode", nil))
	s.Notify(t.Context(), "anything", nil)
	s.Cancel(nil)

	info, err := r.Initialize(t.Context(), nil, nil)
	require.NoError(t, err)
	require.Equal(t, "explore", info.Kind)
	require.Equal(t, backend.AdapterConnects, info.MCP)
}
