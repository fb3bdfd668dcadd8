package mcprelay_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"math/rand"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/mcp/mcprelay"
	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/internal/test/logtest"
	"github.com/acp-agent/acp-agent/internal/test/proctest"
)

// run runs a relay in this process.
func run(
	t testing.TB, p *mcprelay.Publisher, in io.Reader, server process.Command,
) (string, error) {
	t.Helper()
	var out bytes.Buffer
	err := mcprelay.Run(t.Context(), in, &out, server,
		mcprelay.Options{Address: p.Address(), Secret: p.Secret()})
	return out.String(), err
}

// Clause W9.
func TestEverythingArrivesBeforeTheEnd(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	var sent []byte
	for range 2000 {
		l := make([]byte, random.Intn(2000))
		for i := range l {
			l[i] = byte(' ' + random.Intn(200))
		}
		sent = append(append(sent, l...), '\n')
	}
	sent = append(sent, "no end"...)
	got, err := run(t, publish(t, folders(t, "a")...), bytes.NewReader(sent), self("echo"))
	require.NoError(t, err)
	require.Equal(t, string(sent), got)
}

func TestExitStatusIsPassedOn(t *testing.T) {
	t.Setenv(mcprelay.SecretVariable, "hidden")
	reading, writing := io.Pipe()
	defer writing.Close()
	got, err := run(t, publish(t, folders(t, "a")...), reading, self("environment"))
	var exit *process.ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, 7, exit.Code)
	require.Equal(t, "\"\"\n", got)
}

// A relay that does not get the roots of its session gets none, and passes messages unchanged.
//
// Clause A22.
func TestRunWithoutSession(t *testing.T) {
	p, other, closed := publish(t, folders(t, "a")...), publish(t, folders(t, "b")...), publish(t,
		folders(t, "c")...)
	require.NoError(t, closed.Close())
	const line = `{"id":1,"method":"initialize","params":{"capabilities":{}}}` + "\n"
	for name, o := range map[string]mcprelay.Options{
		"another secret":  {Address: p.Address(), Secret: other.Secret()},
		"another socket":  {Address: other.Address(), Secret: p.Secret()},
		"no roots yet":    {Address: publish(t).Address(), Secret: p.Secret()},
		"a session ended": {Address: closed.Address(), Secret: closed.Secret()},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			var log logtest.Text
			o.Logger = log.Logger(slog.LevelInfo)
			require.NoError(t, mcprelay.Run(t.Context(), strings.NewReader(line), &out,
				self("echo"), o))
			require.Equal(t, line, out.String())
			require.Contains(t, log.String(), "messages pass unchanged")
		})
	}
}

func TestSessionEnds(t *testing.T) {
	dirs := folders(t, "z", "a")
	p := publish(t, dirs...)
	c := connect(t, behind(p, self("legacy")), &mcp.ClientOptions{}, "file:///own")
	require.Equal(t, uris(t, dirs...), c.call("roots"))
	require.NoError(t, p.Close())
	require.Eventually(t, func() bool { return c.call("roots") == "file:///own" }, patience, tick)
}

// Clause W9.
func TestServerEndsWithTheRelay(t *testing.T) {
	for name, end := range map[string]func(in io.Closer, cancel func()){
		"client input ends": func(in io.Closer, _ func()) { _ = in.Close() },
		"context ends":      func(_ io.Closer, cancel func()) { cancel() },
	} {
		t.Run(name, func(t *testing.T) {
			h := proctest.Watch(t)
			p := publish(t, folders(t, "a")...)
			in, send := io.Pipe()
			defer send.Close()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ran := make(chan error, 1)
			go func() {
				ran <- mcprelay.Run(ctx, in, io.Discard, self("hold", h.Env()),
					mcprelay.Options{Address: p.Address(), Secret: p.Secret()})
			}()
			server := h.Next()
			end(send, cancel)
			require.NoError(t, <-ran, "the relay's own signal is not an error")
			server.Ended()
		})
	}
}

// Clause W9.
func TestClientStopsReading(t *testing.T) {
	p := publish(t, folders(t, "a")...)
	in, send := io.Pipe()
	defer send.Close()
	broken := errors.New("broken")
	out, got := io.Pipe()
	require.NoError(t, out.CloseWithError(broken))
	go func() { _, _ = io.WriteString(send, "hello\n") }()
	err := mcprelay.Run(t.Context(), in, got, self("echo"),
		mcprelay.Options{Address: p.Address(), Secret: p.Secret()})
	require.ErrorIs(t, err, broken)
}
