package mcprelay_test

import (
	"bufio"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/mcp/mcprelay"
	"github.com/acp-agent/acp-agent/internal/mcp/mcproots"
	"github.com/acp-agent/acp-agent/internal/test/logtest"
)

// listener is a relay's end of a connection to a publisher.
type listener struct {
	net.Conn
	in *bufio.Reader
	t  testing.TB
}

// dial connects and sends a secret.
func dial(t testing.TB, address, secret string) listener {
	t.Helper()
	conn, err := net.Dial("unix", address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
	_, _ = io.WriteString(conn, secret) // it may be closed by then, which reading shows
	return listener{conn, bufio.NewReader(conn), t}
}

func (l listener) next() string {
	l.t.Helper()
	line, err := l.in.ReadString('\n')
	require.NoError(l.t, err)
	return strings.TrimSuffix(line, "\n")
}

// closed fails unless the publisher closes the connection without sending anything.
func (l listener) closed() {
	l.t.Helper()
	said, err := l.in.ReadString('\n')
	require.Empty(l.t, said)
	require.Error(l.t, err)
	require.NotErrorIs(l.t, err, os.ErrDeadlineExceeded)
}

// listedAs returns the list of directories as sent to relays.
func listedAs(t testing.TB, dirs ...string) string {
	t.Helper()
	var roots []string
	for _, r := range snapshot(t, dirs...).All() {
		roots = append(roots, `{"name":"`+r.Name+`","uri":"`+r.URI+`"}`)
	}
	return `{"roots":[` + strings.Join(roots, ",") + `]}`
}

// Clause A22.
func TestSecret(t *testing.T) {
	var log logtest.Text
	p := publishWith(t, &log, 100*time.Millisecond, time.Second, folders(t, "a")...)
	other := publish(t, folders(t, "b")...)
	require.Regexp(t, `^[0-9a-f]{64}$`, p.Secret())
	for _, wrong := range []string{"\n", "x\n", p.Secret()[1:] + "\n", p.Secret() + "x",
		p.Secret() + "\r\n", other.Secret() + "\n", strings.ToUpper(p.Secret()) + "\n"} {
		dial(t, p.Address(), wrong).closed()
	}
	require.NotEmpty(t, dial(t, other.Address(), other.Secret()+"\n").next())
	require.Contains(t, log.String(), "did not send the secret")
	require.NotContains(t, log.String(), p.Secret())
}

func TestSilentConnection(t *testing.T) {
	p := publishWith(t, &logtest.Text{}, time.Millisecond, time.Second, folders(t, "a")...)
	dial(t, p.Address(), "").closed()
}

// Clauses M1, M3.
func TestChanges(t *testing.T) {
	dirs := folders(t, "z", "a", "m")
	p := publish(t)
	l := dial(t, p.Address(), p.Secret()+"\n")
	p.Set(snapshot(t, dirs[:2]...))
	require.Equal(t, listedAs(t, dirs[:2]...), l.next(),
		"the first list, and the roots in their order")
	p.Set(snapshot(t, dirs[:2]...))
	p.Set(snapshot(t, dirs[1], dirs[0]))
	require.Equal(t, listedAs(t, dirs[1], dirs[0]), l.next(),
		"the same list is no change, another order is")
	p.Set(mcproots.Snapshot{})
	require.Equal(t, `{"roots":[]}`, l.next())
	late := dial(t, p.Address(), p.Secret()+"\n")
	require.Equal(t, `{"roots":[]}`, late.next())
	require.NoError(t, p.Close())
	l.closed()
	late.closed()
	_, err := os.Lstat(p.Address())
	require.ErrorIs(t, err, fs.ErrNotExist)
	p.Set(snapshot(t, dirs...))
	require.NoError(t, p.Close())
}

// Clause M6.
func TestVanishedRoot(t *testing.T) {
	dirs := folders(t, "a", "b")
	p := publishWith(t, &logtest.Text{}, patience, tick, dirs...)
	l := dial(t, p.Address(), p.Secret()+"\n")
	both, one := listedAs(t, dirs...), listedAs(t, dirs[0])
	require.Equal(t, both, l.next())
	away := dirs[1] + "-away"
	require.NoError(t, os.Rename(dirs[1], away))
	require.Equal(t, one, l.next())
	require.NoError(t, os.Rename(away, dirs[1]))
	require.Equal(t, both, l.next())
}

// Clause A24.
func TestRelaysCannotChangeRoots(t *testing.T) {
	dirs := folders(t, "a")
	p := publish(t, dirs...)
	l := dial(t, p.Address(), p.Secret()+"\n"+`{"roots":[{"uri":"file:///"}]}`+"\n")
	if said, err := l.in.ReadString('\n'); err == nil {
		require.Equal(t, listedAs(t, dirs...)+"\n", said)
	}
	require.Equal(t, listedAs(t, dirs...), dial(t, p.Address(), p.Secret()+"\n").next())
}

func TestSocketDirectory(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no file modes")
	}
	dir := short(t)
	require.NoError(t, os.Mkdir(dir, 0o755))
	left, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, "left"),
		Net: "unix"})
	require.NoError(t, err)
	left.SetUnlinkOnClose(false)
	require.NoError(t, left.Close())
	old := time.Now().Add(-2 * time.Hour)
	require.NoError(t, os.Chtimes(filepath.Join(dir, "left"), old, old))
	p, err := mcprelay.Listen(dir, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	defer p.Close()
	info, err := os.Stat(dir)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o700), info.Mode().Perm())
	_, err = os.Lstat(filepath.Join(dir, "left"))
	require.ErrorIs(t, err, fs.ErrNotExist, "stale sockets are removed")

	link := dir + "-link"
	require.NoError(t, os.Symlink(dir, link))
	_, err = mcprelay.Listen(link, slog.New(slog.DiscardHandler))
	require.Error(t, err)

	t.Run("too long for a socket", func(t *testing.T) {
		t.Setenv("TMPDIR", dir)
		p, err := mcprelay.Listen(filepath.Join(dir, strings.Repeat("long", 30)),
			slog.New(slog.DiscardHandler))
		require.NoError(t, err)
		p.Set(snapshot(t, folders(t, "a")...))
		require.NotEmpty(t, dial(t, p.Address(), p.Secret()+"\n").next())
		info, err := os.Stat(filepath.Dir(p.Address()))
		require.NoError(t, err)
		require.Equal(t, fs.FileMode(0o700), info.Mode().Perm())
		require.NoError(t, p.Close())
		_, err = os.Lstat(filepath.Dir(p.Address()))
		require.ErrorIs(t, err, fs.ErrNotExist)
	})
}

// Clause A24.
func TestAsk(t *testing.T) {
	dirs := folders(t, "z", "a", "m")
	link := dirs[0] + "-link"
	require.NoError(t, os.Symlink(dirs[1], link))
	p := publish(t, dirs[0], link, dirs[2])
	ask := func() ([]string, error) {
		roots, err := mcprelay.SessionRoots(t.Context(), p.Address(), p.Secret())
		var named []string
		for _, r := range roots {
			named = append(named, r.Dir.String()+" "+r.Real.String())
		}
		return named, err
	}
	asked := func() []string {
		t.Helper()
		named, err := ask()
		require.NoError(t, err)
		return named
	}
	require.Equal(t, []string{dirs[0] + " " + dirs[0], link + " " + dirs[1],
		dirs[2] + " " + dirs[2]}, asked())

	require.NoError(t, os.Rename(dirs[2], dirs[2]+"-away"))
	require.Equal(t, []string{dirs[0] + " " + dirs[0], link + " " + dirs[1]}, asked(),
		"without a root that vanished")
	p.Set(snapshot(t, dirs[1], link))
	require.Equal(t, []string{dirs[1] + " " + dirs[1], link + " " + dirs[1]}, asked(),
		"both paths of a root")
	p.Set(snapshot(t, dirs[0]))
	require.Empty(t, asked(), "nothing without additional roots")

	_, err := mcprelay.SessionRules(t.Context(), p.Address(), p.Secret())
	require.Error(t, err, "rules that are not known are not none")
	known := mcprelay.Rules{Deny: []string{"read x"}}
	p.SetAnswers(nil, func() (mcprelay.Rules, bool) { return known, len(known.Deny) > 0 })
	rules, err := mcprelay.SessionRules(t.Context(), p.Address(), p.Secret())
	require.NoError(t, err)
	require.Equal(t, known, rules)
	known.Deny = nil
	_, err = mcprelay.SessionRules(t.Context(), p.Address(), p.Secret())
	require.Error(t, err)

	_, err = mcprelay.SessionRoots(t.Context(), p.Address(), strings.Repeat("0", 64))
	require.ErrorContains(t, err, "not open")
	require.NoError(t, p.Close())
	_, err = ask()
	require.ErrorContains(t, err, "open it with acp-agent")
}
