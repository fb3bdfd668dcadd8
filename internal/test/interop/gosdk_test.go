package interop

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/conform/rawrpc"
	"github.com/acp-agent/acp-agent/internal/test/interop/program"
	"github.com/acp-agent/acp-agent/internal/test/interop/stock"
	"github.com/acp-agent/acp-agent/internal/test/logtest"
	"github.com/acp-agent/acp-agent/internal/test/volume"
)

// gopher is a client based on the Go SDK. Its Client is nil: requests that a client without
// capabilities never receives panic.
type gopher struct {
	*sdk.ClientSideConnection
	sdk.Client
	t     *testing.T
	lines *transcript
	log   *logtest.Text

	mu   sync.Mutex
	said []string // the text of the messages, in order
}

// transcript keeps the lines of both sides of a connection. It is safe for concurrent use.
type transcript struct {
	mu    sync.Mutex
	lines []rawrpc.Line
	rest  []byte // what the agent wrote of a line that has not ended
}

// sent is the client's writer: the SDK writes a line at once.
type sent struct {
	io.Writer
	*transcript
}

func (s sent) Write(p []byte) (int, error) {
	s.mu.Lock()
	s.lines = append(s.lines, rawrpc.Line{Text: string(bytes.TrimSuffix(p, []byte("\n")))})
	s.mu.Unlock()
	return s.Writer.Write(p)
}

// received is the client's reader.
type received struct {
	io.Reader
	*transcript
}

func (r received) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rest = append(r.rest, p[:n]...)
	for {
		line, rest, whole := bytes.Cut(r.rest, []byte("\n"))
		if !whole {
			return n, err
		}
		r.lines = append(r.lines, rawrpc.Line{FromAgent: true, Text: string(line)})
		r.rest = rest
	}
}

// connect starts the program behind the Go SDK's client.
func connect(t *testing.T, state string, env ...string) *gopher {
	t.Helper()
	cmd := exec.CommandContext(within(t), program.Path(), "--state-dir", state)
	stderr := &logtest.Text{}
	cmd.Env, cmd.Stderr = append(os.Environ(), env...), stderr
	in, out := startPiped(t, cmd)
	g := &gopher{t: t, lines: &transcript{}, log: &logtest.Text{}}
	g.ClientSideConnection = sdk.NewClientSideConnection(g, sent{in, g.lines}, received{out, g.lines})
	g.SetLogger(slog.New(slog.NewTextHandler(g.log, nil)))
	t.Cleanup(func() {
		require.NoError(t, in.Close())
		<-g.Done()
		require.NoError(t, cmd.Wait(), "standard error: %s", stderr)
		valid(t, g.lines.lines)
	})
	_, err := g.Initialize(t.Context(), sdk.InitializeRequest{ProtocolVersion: sdk.ProtocolVersionNumber})
	require.NoError(t, err)
	return g
}

// SessionUpdate implements sdk.Client.
func (g *gopher) SessionUpdate(_ context.Context, n sdk.SessionNotification) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if chunk := n.Update.AgentMessageChunk; chunk != nil && chunk.Content.Text != nil {
		g.said = append(g.said, chunk.Content.Text.Text)
	}
	return nil
}

// heard returns the text of the messages since the last call.
func (g *gopher) heard() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	text := strings.Join(g.said, "")
	g.said = nil
	return text
}

// The SDK's client queues 1,024 notifications, then closes the connection. It reads faster than it
// handles them, so a longer history must be paced.
//
// Clause A27.
func TestLongLoadGoSDK(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name             string
		chunks, messages int
	}{
		{"A27/a hundred thousand updates that streamed by", 100_000, 0},
		{"A27/thousands of messages", 0, volume.Of(4_000, 20_000)},
	} {
		t.Run(c.name, func(t *testing.T) {
			state, cwd := filepath.Join(t.TempDir(), "state"), folder(t)
			s := stock.Open(state)
			require.NoError(t, s.Session(t.Context(), stock.Session{ID: "long", Cwd: cwd, Chunks: c.chunks, Messages: c.messages}))
			require.NoError(t, s.Close())
			g := connect(t, state, "ACP_AGENT_REPLAY_RATE=1000") // which a busy machine keeps up with
			_, err := g.LoadSession(t.Context(), sdk.LoadSessionRequest{SessionId: "long", Cwd: cwd, McpServers: []sdk.McpServer{}})
			require.NoError(t, err, "the client's log: %s", g.log)
			var want strings.Builder
			for i := range c.chunks {
				want.WriteString(stock.Chunk(i))
			}
			for i := range c.messages {
				want.WriteString(stock.Message(i))
			}
			require.True(t, g.heard() == want.String(), "the conversation is another")
		})
	}
}
