package mcprelay_test

//lint:file-ignore SA1019 the SDK marks all of roots as deprecated (SEP-2577)

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/acp-agent/acp-agent/acp/child"
	"github.com/acp-agent/acp-agent/acp/mcprelay"
	"github.com/acp-agent/acp-agent/workspace"
	"github.com/acp-agent/acp-agent/workspace/mcproots"
)

// The test binary plays relays and servers: role names which.
const (
	role = "ACP_MCPRELAY_TEST_ROLE"
	// address is where a server that is to be seen to end dials.
	address = "ACP_MCPRELAY_TEST_ADDRESS"
)

func TestMain(m *testing.M) {
	if r := os.Getenv(role); r != "" {
		os.Exit(play(r))
	}
	goleak.VerifyTestMain(m)
}

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
		c, err := net.Dial("tcp", os.Getenv(address))
		if err != nil {
			return 1
		}
		_, _ = io.WriteString(c, "here\n")
		_, _ = io.Copy(io.Discard, c)
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
	server := child.Command{Path: os.Args[4], Args: os.Args[5:], Env: []string{role + "=" + os.Getenv(serverRole)}}
	err := mcprelay.Run(context.Background(), os.Stdin, os.Stdout, server, mcprelay.Options{
		Address: os.Args[2], Secret: os.Getenv(mcprelay.SecretVariable),
	})
	var exit *child.ExitError
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
func self(r string, env ...string) child.Command {
	exe, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return child.Command{Path: exe, Env: append(env, role+"="+r, "GORACE=atexit_sleep_ms=0")}
}

// behind is the relay in front of a server.
func behind(p *mcprelay.Publisher, server child.Command) child.Command {
	wrapped := p.Wrap(self("relay"), server)
	for _, e := range server.Env {
		if r, ok := strings.CutPrefix(e, role+"="); ok {
			wrapped.Env = append(wrapped.Env, serverRole+"="+r)
		}
	}
	return wrapped
}

// publish makes a publisher of directories, closed with the test.
func publish(t testing.TB, dirs ...string) *mcprelay.Publisher {
	t.Helper()
	return publishWith(t, mcprelay.PublisherOptions{}, dirs...)
}

func publishWith(t testing.TB, o mcprelay.PublisherOptions, dirs ...string) *mcprelay.Publisher {
	t.Helper()
	p, err := mcprelay.Listen(short(t), o)
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
	dir, err := os.MkdirTemp("", "r")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "relay")
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
	top, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	for _, name := range names {
		dirs = append(dirs, filepath.Join(top, name))
		require.NoError(t, os.Mkdir(dirs[len(dirs)-1], 0o755))
	}
	return dirs
}

// uris are directories as roots, a line each.
func uris(t testing.TB, dirs ...string) string {
	t.Helper()
	return strings.Join(snapshot(t, dirs...).URIs(), "\n")
}

// logs gathers what is logged.
type logs struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *logs) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }
