package mcprelay_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/mcprelay"
	"github.com/acp-agent/acp-agent/internal/mcproots"
	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/internal/testutil/dirtest"
	"github.com/acp-agent/acp-agent/internal/testutil/logtest"
	"github.com/acp-agent/acp-agent/internal/testutil/mcptest"
	"github.com/acp-agent/acp-agent/internal/testutil/proctest"
	"github.com/acp-agent/acp-agent/workspace"
)

func TestMain(m *testing.M) { proctest.Main(m, play) }

// patience bounds waits for what must happen.
const patience = 30 * time.Second

func play(r string) int {
	switch r {
	case "relay": // mcp-relay, with the command as the program has it
		return playRelay()
	case "echo":
		_, _ = io.Copy(os.Stdout, os.Stdin)
	case "touch":
		_ = os.WriteFile(os.Getenv("MARKER"), nil, 0o600)
	case "environment":
		fmt.Printf("%q\n", os.Getenv(mcprelay.SecretVariable))
		return 7
	case "hold": // ignores the end of its input
		return proctest.HoldOn()
	default:
		return playSDK(r)
	}
	return 0
}

// playRelay is given: --roots-from SOCKET -- COMMAND ARGS..., and the role of the command in the environment.
func playRelay() int {
	if len(os.Args) < 5 || os.Args[1] != "--roots-from" || os.Args[3] != "--" {
		return 90
	}
	server := process.Command{Path: os.Args[4], Args: os.Args[5:], Env: proctest.Env(os.Getenv(serverRole))}
	err := mcprelay.Run(context.Background(), os.Stdin, os.Stdout, server, mcprelay.Options{
		Address: os.Args[2], Secret: os.Getenv(mcprelay.SecretVariable),
	})
	var exit *process.ExitError
	switch {
	case errors.As(err, &exit):
		return exit.Code
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		return 91
	}
	return 0
}

// serverRole is the role of the server behind a relay that is played.
const serverRole = "ACP_MCPRELAY_TEST_SERVER"

// self is a command that starts this binary in a role.
func self(r string, env ...string) process.Command {
	return process.Command{Path: proctest.Executable(), Env: proctest.Env(r, env...)}
}

// behind is the relay in front of a server.
func behind(p *mcprelay.Publisher, server process.Command) process.Command {
	wrapped := p.Wrap(self("relay"), server)
	for _, e := range server.Env {
		if r, ok := strings.CutPrefix(e, proctest.Role+"="); ok {
			wrapped.Env = append(wrapped.Env, serverRole+"="+r)
		}
	}
	return wrapped
}

// publish makes a publisher of directories, closed with the test.
func publish(t testing.TB, dirs ...string) *mcprelay.Publisher {
	t.Helper()
	return publishWith(t, &logtest.Text{}, time.Second, time.Second, dirs...)
}

func publishWith(t testing.TB, log *logtest.Text, timeout, check time.Duration, dirs ...string) *mcprelay.Publisher {
	t.Helper()
	p, err := mcprelay.ListenWith(short(t), log.Logger(slog.LevelDebug), timeout, check)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	if len(dirs) > 0 {
		p.Set(snapshot(t, dirs...))
	}
	return p
}

// short is a directory with a path that leaves room for a socket's name.
func short(t testing.TB) string {
	t.Helper()
	return filepath.Join(dirtest.Short(t), "relay")
}

// snapshot are directories as a session's roots.
func snapshot(t testing.TB, dirs ...string) mcproots.Snapshot {
	t.Helper()
	roots, err := workspace.NewRoots(dirs[0], dirs[1:])
	require.NoError(t, err)
	w, err := workspace.Open(t.Context(), roots, workspace.Options{})
	require.NoError(t, err)
	defer w.Close()
	s, err := mcproots.Take(w)
	require.NoError(t, err)
	return s
}

// folders makes directories whose order is not that of their names.
func folders(t testing.TB, names ...string) (dirs []string) {
	t.Helper()
	top := dirtest.New(t)
	for _, name := range names {
		dirs = append(dirs, filepath.Join(top, name))
		require.NoError(t, os.Mkdir(dirs[len(dirs)-1], 0o755))
	}
	return dirs
}

// uris are directories as roots, a line each.
func uris(t testing.TB, dirs ...string) string {
	t.Helper()
	return strings.Join(mcptest.URIs(t, dirs...), "\n")
}
