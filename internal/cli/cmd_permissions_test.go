package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/internal/cli/runner"
	"github.com/acp-agent/acp-agent/workspace"
)

// allowAlways answers every permission request with "always allow", and counts them.
type allowAlways struct{ requests atomic.Int32 }

func (a *allowAlways) permission(
	_ context.Context, r sdk.RequestPermissionRequest,
) (sdk.RequestPermissionResponse, error) {
	a.requests.Add(1)
	for _, option := range r.Options {
		if option.Kind == sdk.PermissionOptionKindAllowAlways {
			return sdk.RequestPermissionResponse{
				Outcome: sdk.NewRequestPermissionOutcomeSelected(option.OptionId)}, nil
		}
	}
	return sdk.RequestPermissionResponse{Outcome: sdk.NewRequestPermissionOutcomeCancelled()}, nil
}

// startEditor returns a client of the program, which runs until the test ends.
func startEditor(t *testing.T, state string, user *allowAlways) *client.Client {
	t.Helper()
	c, end := runner.Connect(context.Background(), client.Options{Permission: user.permission},
		func(ctx context.Context, in io.Reader, out io.Writer) error {
			run(ctx, []string{"--state-dir", state}, streams{in: in, out: out, err: io.Discard})
			return nil
		})
	t.Cleanup(func() { require.NoError(t, end()) })
	_, err := c.Initialize(t.Context())
	require.NoError(t, err)
	return c
}

// output runs the program, which must succeed, and returns its standard output.
func output(t *testing.T, args ...string) string {
	t.Helper()
	var out, errors bytes.Buffer
	code := run(t.Context(), args, streams{in: bytes.NewReader(nil), out: &out, err: &errors})
	require.Zero(t, code, errors.String())
	return out.String()
}

// Clause A25.
func TestConsents(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	root, state := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(root, ".mcp.json"),
		[]byte(`{"mcpServers":{"found":{"command":"no-such-program","args":["hunter2"],
			"env":{"TOKEN":"hunter2"}}}}`), 0o600))
	user := &allowAlways{}
	c := startEditor(t, state, user)
	roots, err := workspace.NewRoots(root, nil)
	require.NoError(t, err)
	s, err := c.NewSession(t.Context(), client.Setup{Roots: roots})
	require.NoError(t, err)
	start := func() {
		_, err := c.Prompt(t.Context(), s.ID, sdk.TextBlock("/mcp start found"))
		require.NoError(t, err)
	}
	start()
	start()
	require.EqualValues(t, 1, user.requests.Load(), "it is always allowed")

	printed := output(t, "permissions", "list", "--json", "--state-dir", state)
	require.NotContains(t, printed, "hunter2")
	var report struct{ ConsentID, Server, Root, File, Command string }
	require.NoError(t, json.Unmarshal([]byte(printed), &report))
	require.Equal(t, "found", report.Server)
	require.Equal(t, workspace.Real(roots.Cwd()).String(), report.Root)
	require.Equal(t, "no-such-program", report.Command)
	require.Equal(t, ".mcp.json", filepath.Base(report.File))

	require.Contains(t, output(t, "permissions", "revoke", "--dir", root, "--state-dir", state),
		"revoked "+report.ConsentID[:12]+": server found: no-such-program in ")
	start()
	require.EqualValues(t, 2, user.requests.Load(), "the user is asked again")
}
