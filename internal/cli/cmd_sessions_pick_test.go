package cli

import (
	"cmp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/model"
	"github.com/acp-agent/acp-agent/acp/proxy"
	"github.com/acp-agent/acp-agent/internal/config"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// A person copies the command that continues a session, and may have imported it.
func TestShownCommand(t *testing.T) {
	for line, want := range map[string]string{
		"opencode acp":         "opencode acp",
		"npx @x/agent@1 --acp": "npx @x/agent@1 --acp",
		"$(touch x)":           "'$(touch x)'",
		"a; b":                 "'a; b'",
	} {
		require.Equal(t, want, shownCommand(line))
	}
}

// What the picker continues is what this machine is configured to run: never a name that is stored.
func TestPickerStartsNoStoredCommand(t *testing.T) {
	set := newSettings(streams{})
	one := sessionstore.Session{ID: "s", Agent: sessionstore.Agent{Kind: proxy.Kind, Profile: "./agent"}}
	require.Contains(t, pickedSession{pickedSessions{set: set}, one}.Obstacle(),
		"run: acp-agent run --resume s PROMPT -- ./agent")
	one.Agent.Profile = "no-such-agent --acp"
	require.Contains(t, pickedSession{pickedSessions{set: set}, one}.Obstacle(), "PROMPT -- PATH/no-such-agent --acp")
}

// A session of a model is continued with the only model that there is, or the configured one.
func TestModelOfASession(t *testing.T) {
	one := sessionstore.Session{ID: "s", Agent: sessionstore.Agent{Kind: model.Kind}}
	set := newSettings(streams{})
	obstacle := func() string { return pickedSession{pickedSessions{set: set}, one}.Obstacle() }
	require.Contains(t, obstacle(), "no model is configured")
	for _, c := range []struct {
		models []string
		chosen string
		sole   string
	}{{nil, "", ""}, {[]string{"a"}, "", "a"}, {[]string{"a", "b"}, "", ""}, {[]string{"a", "b"}, "b", "b"}} {
		set.config = config.Config{Models: map[string]config.Model{}, Model: c.chosen}
		for _, id := range c.models {
			set.config.Models[id] = config.Model{}
		}
		require.Equal(t, c.sole, set.soleModel())
		require.Equal(t, "acp-agent run --model "+cmp.Or(c.sole, "NAME")+" --resume s PROMPT",
			set.continueLine(one, "s", "PROMPT"))
		require.Equal(t, c.sole == "", obstacle() != "")
		if len(c.models) == 2 && c.sole == "" {
			require.Equal(t, "several models are configured; name one: acp-agent run --model NAME "+
				"--resume s PROMPT", obstacle())
		}
	}
	set.configPath = "my config"
	require.NoError(t, set.flags.Set("state-dir", "dir"))
	require.Equal(t, "acp-agent run '--config=my config' --state-dir=dir --model b --resume s PROMPT",
		set.continueLine(one, "s", "PROMPT"))
}
