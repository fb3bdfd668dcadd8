package mcprelay_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/mcprelay"
	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/internal/testutil/proctest"
)

// run runs a relay in this process.
func run(t testing.TB, p *mcprelay.Publisher, in io.Reader, server process.Command) (string, error) {
	t.Helper()
	var out bytes.Buffer
	err := mcprelay.Run(t.Context(), in, &out, server, mcprelay.Options{Address: p.Address(), Secret: p.Secret()})
	return out.String(), err
}

func TestW9_AllThatWasSentArrivesBeforeTheEnd(t *testing.T) {
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

func TestTheServersStatusIsPassedOnAndTheSecretIsNot(t *testing.T) {
	t.Setenv(mcprelay.SecretVariable, "hidden")
	reading, writing := io.Pipe()
	defer writing.Close()
	got, err := run(t, publish(t, folders(t, "a")...), reading, self("environment"))
	var exit *process.ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, 7, exit.Code)
	require.Equal(t, "\"\"\n", got)
}

func TestA22_NothingIsStartedWithoutTheRoots(t *testing.T) {
	p := publish(t, folders(t, "a")...)
	marker := filepath.Join(t.TempDir(), "started")
	server := self("touch", "MARKER="+marker)
	start := func(address, secret string, o mcprelay.Options) error {
		o.Address, o.Secret = address, secret
		return mcprelay.Run(t.Context(), strings.NewReader(""), io.Discard, server, o)
	}
	var refused *mcprelay.RefusedError
	require.ErrorAs(t, start(p.Address(), publish(t).Secret(), mcprelay.Options{}), &refused)
	require.ErrorAs(t, start(publish(t).Address(), p.Secret(), mcprelay.Options{}), &refused)
	silent := publish(t)
	err := start(silent.Address(), silent.Secret(), mcprelay.Options{ConnectTimeout: time.Millisecond})
	require.ErrorAs(t, err, &refused, "it has no roots yet")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NoError(t, p.Close())
	var gone *mcprelay.SocketError
	require.ErrorAs(t, start(p.Address(), p.Secret(), mcprelay.Options{}), &gone)
	_, err = os.Lstat(marker)
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestTheLastListStaysWhenTheSessionHasEnded(t *testing.T) {
	dirs := folders(t, "z", "a")
	p := publish(t, dirs...)
	c := connect(t, behind(p, self("modern")), options())
	require.NoError(t, p.Close())
	require.Equal(t, uris(t, dirs...), c.call("roots"))
}

func TestW9_TheServerEndsWithTheClientsInput(t *testing.T) {
	h := proctest.Watch(t)
	p := publish(t, folders(t, "a")...)
	in, closeIn := io.Pipe()
	ran := make(chan error, 1)
	go func() {
		ran <- mcprelay.Run(t.Context(), in, io.Discard, self("hold", h.Env()), mcprelay.Options{Address: p.Address(), Secret: p.Secret()})
	}()
	server := h.Next()
	require.NoError(t, closeIn.Close())
	require.NoError(t, <-ran, "the signal was ours")
	server.Ended()
}

func TestW9_TheServerEndsWithTheContext(t *testing.T) {
	h := proctest.Watch(t)
	p := publish(t, folders(t, "a")...)
	in, closeIn := io.Pipe()
	defer closeIn.Close()
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() {
		ran <- mcprelay.Run(ctx, in, io.Discard, self("hold", h.Env()), mcprelay.Options{Address: p.Address(), Secret: p.Secret()})
	}()
	server := h.Next()
	cancel()
	require.NoError(t, <-ran)
	server.Ended()
}

func TestW9_AClientThatReadsNoMoreEndsTheServer(t *testing.T) {
	p := publish(t, folders(t, "a")...)
	in, send := io.Pipe()
	defer send.Close()
	broken := errors.New("broken")
	out, got := io.Pipe()
	require.NoError(t, out.CloseWithError(broken))
	go func() { _, _ = io.WriteString(send, "hello\n") }()
	err := mcprelay.Run(t.Context(), in, got, self("echo"), mcprelay.Options{Address: p.Address(), Secret: p.Secret()})
	require.ErrorIs(t, err, broken)
}

func TestW9_ACallThatIsRepeatedIsAnsweredBeforeTheEnd(t *testing.T) {
	dirs := folders(t, "z", "a")
	call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"roots","arguments":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`
	got, err := run(t, publish(t, dirs...), strings.NewReader(call+"\n"), self("modern"))
	require.NoError(t, err)
	require.Contains(t, got, `"id":1,`)
	require.Contains(t, got, strings.ReplaceAll(uris(t, dirs...), "\n", `\n`))
}
