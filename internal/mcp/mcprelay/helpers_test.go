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

	"github.com/acp-agent/acp-agent/internal/mcp/mcprelay"
	"github.com/acp-agent/acp-agent/internal/mcp/mcproots"
	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/logtest"
	"github.com/acp-agent/acp-agent/internal/test/mcptest"
	"github.com/acp-agent/acp-agent/internal/test/proctest"
	"github.com/acp-agent/acp-agent/internal/test/roottest"
	"github.com/acp-agent/acp-agent/internal/test/volume"
)

func TestMain(m *testing.M) { proctest.Main(m, runRole) }

// patience bounds waits for what must happen.
const patience = volume.Patience

// runRole runs this binary as a relay or a server.
func runRole(role string) int {
	switch role {
	case "relay": // acp-agent mcp-relay
		return runRelay()
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
		return runSDKServer(role)
	}
	return 0
}

// runRelay takes the arguments --roots-from SOCKET --server NAME -- COMMAND ARGS..., and the role
// of COMMAND from the environment.
func runRelay() int {
	if len(os.Args) < 7 || os.Args[1] != "--roots-from" || os.Args[3] != "--server" ||
		os.Args[5] != "--" {
		return 90
	}
	server := process.Command{Path: os.Args[6], Args: os.Args[7:],
		Env: proctest.Env(os.Getenv(serverRole))}
	err := mcprelay.Run(context.Background(), os.Stdin, os.Stdout, server, mcprelay.Options{
		Address: os.Args[2], Secret: os.Getenv(mcprelay.SecretVariable), Server: os.Args[4],
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

// serverRole is the variable with the role of the server behind a relay.
const serverRole = "ACP_MCPRELAY_TEST_SERVER"

// self returns a command that runs this binary in a role.
func self(r string, env ...string) process.Command {
	return process.Command{Path: proctest.Executable(), Env: proctest.Env(r, env...)}
}

// behind returns the command of a relay in front of a server.
func behind(p *mcprelay.Publisher, server process.Command) process.Command {
	wrapped := p.Wrap(self("relay"), server)
	for _, e := range server.Env {
		if r, ok := strings.CutPrefix(e, proctest.Role+"="); ok {
			wrapped.Env = append(wrapped.Env, serverRole+"="+r)
		}
	}
	return wrapped
}

// publish returns a publisher of directories that is closed at the end of the test.
func publish(t testing.TB, dirs ...string) *mcprelay.Publisher {
	t.Helper()
	return publishWith(t, &logtest.Text{}, patience, time.Second, dirs...)
}

func publishWith(
	t testing.TB, log *logtest.Text, timeout, check time.Duration, dirs ...string,
) *mcprelay.Publisher {
	t.Helper()
	p, err := mcprelay.ListenWith(short(t), log.Logger(slog.LevelDebug), timeout, check)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	if len(dirs) > 0 {
		p.Set(snapshot(t, dirs...))
	}
	return p
}

// short returns a directory with a path short enough for a socket.
func short(t testing.TB) string {
	t.Helper()
	return filepath.Join(dirtest.Short(t), "relay")
}

// snapshot returns directories as the roots of a session.
func snapshot(t testing.TB, dirs ...string) mcproots.Snapshot {
	t.Helper()
	w := roottest.Open(t, dirs[0], dirs[1:]...)
	s, err := mcproots.Take(w)
	require.NoError(t, err)
	return s
}

// folders creates directories in the given order.
func folders(t testing.TB, names ...string) (dirs []string) {
	t.Helper()
	top := dirtest.New(t)
	for _, name := range names {
		dirs = append(dirs, filepath.Join(top, name))
		require.NoError(t, os.Mkdir(dirs[len(dirs)-1], 0o755))
	}
	return dirs
}

// uris returns the root URIs of directories, one per line.
func uris(t testing.TB, dirs ...string) string {
	t.Helper()
	return strings.Join(mcptest.URIs(t, dirs...), "\n")
}
