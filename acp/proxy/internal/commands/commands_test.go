package commands_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/proxy/internal/commands"
	"github.com/acp-agent/acp-agent/acp/proxy/profiles"
	"github.com/acp-agent/acp-agent/discovery"
	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/roottest"
)

// announced is the latest update.
type announced string

func (a *announced) Update(_ context.Context, u backend.Update) error {
	*a = announced(u.Raw)
	return nil
}

func (a *announced) Commit(ctx context.Context, u backend.Update) error { return a.Update(ctx, u) }

// A folder cannot replace a command of the agent, which may obey commands that it has not
// announced. A call of one is sent alone.
//
// Clause A25.
func TestCommandsOfTheAgent(t *testing.T) {
	const dir = ".claude/commands/"
	cwd := dirtest.New(t, dir+"status.md", "S.", dir+"login.md", "L.", dir+"compact.md", "C.",
		dir+"deploy.md", "From the folder.")
	roots, err := discovery.Scan(t.Context(), roottest.Open(t, cwd))
	require.NoError(t, err)
	var shown announced
	profile := profiles.Profile{Finds: profiles.Finds{Commands: []string{"status"}}}
	c := commands.New(profile, slog.New(slog.DiscardHandler), false)
	c.AnnounceRoots(t.Context(), roots, &shown)
	require.Contains(t, string(shown), `"deploy"`)
	for _, own := range []string{"status", "login", "compact"} {
		require.NotContains(t, string(shown), `"`+own+`"`)
	}
	for text, alone := range map[string]bool{"/status": true, "/login now": true, "/compact": true,
		"/unknown to both": true, "/etc/hosts is a path": false, "/deploy": false} {
		params := backend.Raw(`{"prompt":[{"type":"text","text":"` + text + `"}]}`)
		p, err := c.Expand(t.Context(), roots, "", params)
		require.NoError(t, err)
		require.Equal(t, alone, p.Alone, text)
		if text == "/deploy" {
			require.Contains(t, string(p.Params), "From the folder.")
		} else {
			require.Equal(t, string(params), string(p.Params))
		}
	}
}
