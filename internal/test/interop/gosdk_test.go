package interop

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/conform/rawrpc"
	"github.com/acp-agent/acp-agent/internal/test/interop/program"
	"github.com/acp-agent/acp-agent/internal/test/interop/stock"
	"github.com/acp-agent/acp-agent/internal/test/logtest"
	"github.com/acp-agent/acp-agent/internal/test/proctest"
	"github.com/acp-agent/acp-agent/internal/test/volume"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/sqlite"
	"github.com/acp-agent/acp-agent/workspace"
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
func connect(t *testing.T, state string, args ...string) *gopher {
	t.Helper()
	cmd := exec.CommandContext(within(t), program.Path(), append([]string{"--state-dir", state}, args...)...)
	stderr := &logtest.Text{}
	cmd.Env, cmd.Stderr = append(os.Environ(), proctest.Env("scripted")...), stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	g := &gopher{t: t, lines: &transcript{}, log: &logtest.Text{}}
	g.ClientSideConnection = sdk.NewClientSideConnection(g, sent{in, g.lines}, received{out, g.lines})
	g.SetLogger(slog.New(slog.NewTextHandler(g.log, nil)))
	t.Cleanup(func() {
		require.NoError(t, in.Close())
		<-g.Done()
		require.NoError(t, cmd.Wait(), "standard error: %s", stderr)
		valid(t, g.lines.lines)
	})
	_, err = g.Initialize(t.Context(), sdk.InitializeRequest{ProtocolVersion: sdk.ProtocolVersionNumber})
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
		{"A27/a thousand messages", 0, 1000},
	} {
		t.Run(c.name, func(t *testing.T) {
			state, cwd := filepath.Join(t.TempDir(), "state"), folder(t)
			s := stock.Open(state)
			require.NoError(t, s.Session(t.Context(), stock.Session{ID: "long", Cwd: cwd, Chunks: c.chunks, Messages: c.messages}))
			require.NoError(t, s.Close())
			g := connect(t, state)
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

// The SDK's client queues 1,024 notifications, then closes the connection: chunks are merged before
// they are sent, and the rest is paced.
//
// Clause A27.
func TestLongLoadOfStoredHistoryGoSDK(t *testing.T) {
	t.Parallel()
	client, err := program.Compile(t.Context(), t.TempDir(), "github.com/acp-agent/acp-agent/internal/test/interop/gosdk")
	require.NoError(t, err)
	many, pace := 20_000, []string(nil)
	if !volume.Full() {
		many, pace = 4_000, []string{"ACP_AGENT_REPLAY_RATE=1000"} // which a busy machine keeps up with
	}
	for _, c := range []struct {
		name              string
		updates, messages int
	}{
		{"A27/a hundred thousand chunks of one message, stored one by one", 100_000, 1},
		{"A27/thousands of messages", many, many},
	} {
		t.Run(c.name, func(t *testing.T) {
			state, cwd := filepath.Join(t.TempDir(), "state"), folder(t)
			words := sha256.New()
			history := make([]sessionstore.Update, c.updates)
			for i := range history {
				text := fmt.Sprintf("update %d of many\n", i)
				words.Write([]byte(text))
				history[i] = sessionstore.StoredUpdate(fmt.Appendf(nil, `{"update":{"sessionUpdate":"agent_message_chunk","messageId":"m%d","content":{"type":"text","text":%q}}}`, i%c.messages, text))
			}
			store(t, state, cwd, history)
			ctx, cancel := context.WithTimeout(t.Context(), 2*patience) // it takes its time
			defer cancel()
			cmd := exec.CommandContext(ctx, client, state, "long", cwd, program.Path())
			cmd.Env = append(os.Environ(), pace...)
			out, err := cmd.Output()
			if exit, ok := err.(*exec.ExitError); ok {
				require.Fail(t, "the client failed", "%s", exit.Stderr)
			}
			require.NoError(t, err)
			var shown struct {
				Updates int
				Text    string
			}
			require.NoError(t, json.Unmarshal(out, &shown))
			require.Equal(t, fmt.Sprintf("%x", words.Sum(nil)), shown.Text, "the conversation is another")
			if c.messages == c.updates {
				require.GreaterOrEqual(t, shown.Updates, c.updates)
			} else {
				require.Less(t, shown.Updates, 1024)
			}
		})
	}
}

// store stores a session with a history of one turn whose chunks are not merged.
func store(t *testing.T, state, cwd string, history []sessionstore.Update) {
	t.Helper()
	s := sqlite.New(sqlite.Options{Dir: state})
	roots, err := workspace.NewRoots(cwd, nil)
	require.NoError(t, err)
	lease, err := s.Create(t.Context(), sessionstore.Session{
		ID: "long", Agent: sessionstore.Agent{Kind: "explore"}, Title: "long",
		Keys: sessionstore.Keys{Roots: roots, Real: []workspace.Dir{roots.Cwd()}},
	})
	require.NoError(t, err)
	turn, err := s.BeginTurn(t.Context(), lease, sessionstore.Turn{})
	require.NoError(t, err)
	for segment := range slices.Chunk(history, 500) {
		require.NoError(t, s.Append(t.Context(), lease, segment))
	}
	require.NoError(t, s.EndTurn(t.Context(), lease, turn))
	require.NoError(t, s.Close())
}
