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

	"github.com/acp-agent/acp-agent/internal/interop/pipes"
	"github.com/acp-agent/acp-agent/internal/interop/program"
	"github.com/acp-agent/acp-agent/internal/interop/stock"
	"github.com/acp-agent/acp-agent/internal/testutil/logtest"
	"github.com/acp-agent/acp-agent/internal/testutil/proctest"
)

// gopher is the Go SDK's own client of the program.
type gopher struct {
	*sdk.ClientSideConnection
	unasked
	t     *testing.T
	lines *transcript
	log   *logtest.Text

	mu   sync.Mutex
	said []string // the text of the messages, in order
}

// transcript keeps the lines of both sides of a connection. It is safe for concurrent use.
type transcript struct {
	mu    sync.Mutex
	lines []pipes.Line
	rest  []byte // what the agent wrote of a line that has not ended
}

// sent is the client's writer: the SDK writes a line at once.
type sent struct {
	io.Writer
	*transcript
}

func (s sent) Write(p []byte) (int, error) {
	s.mu.Lock()
	s.lines = append(s.lines, pipes.Line{Text: string(bytes.TrimSuffix(p, []byte("\n")))})
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
		r.lines = append(r.lines, pipes.Line{FromAgent: true, Text: string(line)})
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

// heard takes the text of the messages since the last time.
func (g *gopher) heard() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	text := strings.Join(g.said, "")
	g.said = nil
	return text
}

// listed are all sessions by id.
func (g *gopher) listed(t *testing.T) map[sdk.SessionId]sdk.SessionInfo {
	t.Helper()
	page, err := g.ListSessions(t.Context(), sdk.ListSessionsRequest{})
	require.NoError(t, err)
	sessions := map[sdk.SessionId]sdk.SessionInfo{}
	for _, s := range page.Sessions {
		sessions[s.SessionId] = s
	}
	return sessions
}

func TestTheGoSDKsClient(t *testing.T) {
	state, cwd := filepath.Join(t.TempDir(), "state"), folder(t, "a.txt", "tangerine\n")
	first, second := folder(t, "b.txt", "tangerine\n"), folder(t, "c.txt", "tangerine\n")
	none := []sdk.McpServer{}
	var id sdk.SessionId
	var told string

	t.Run("A9/new with roots", func(t *testing.T) {
		g := connect(t, state)
		made, err := g.NewSession(t.Context(), sdk.NewSessionRequest{Cwd: cwd, AdditionalDirectories: []string{first, second}, McpServers: none})
		require.NoError(t, err)
		id = made.SessionId
		require.Equal(t, []string{first, second}, g.listed(t)[id].AdditionalDirectories)
		end, err := g.Prompt(t.Context(), sdk.PromptRequest{SessionId: id, Prompt: []sdk.ContentBlock{sdk.TextBlock("/roots")}})
		require.NoError(t, err)
		require.Equal(t, sdk.StopReasonEndTurn, end.StopReason)
		told = g.heard()
		for _, dir := range []string{cwd, first, second} {
			require.Contains(t, told, dir, "A20")
		}
	})
	t.Run("A10/load", func(t *testing.T) {
		g := connect(t, state)
		_, err := g.LoadSession(t.Context(), sdk.LoadSessionRequest{SessionId: id, Cwd: cwd, AdditionalDirectories: []string{second}, McpServers: none})
		require.NoError(t, err)
		require.Equal(t, told, g.heard(), "A27")
		require.Equal(t, []string{second}, g.listed(t)[id].AdditionalDirectories)
	})
	t.Run("A10/resume", func(t *testing.T) {
		g := connect(t, state)
		_, err := g.ResumeSession(t.Context(), sdk.ResumeSessionRequest{SessionId: id, Cwd: cwd})
		require.NoError(t, err)
		require.Empty(t, g.heard(), "A27")
		require.Empty(t, g.listed(t)[id].AdditionalDirectories)
	})
	t.Run("A14/fork", func(t *testing.T) {
		g := connect(t, state)
		fork, err := g.UnstableForkSession(t.Context(), sdk.UnstableForkSessionRequest{
			SessionId: id, Cwd: cwd, AdditionalDirectories: []string{first},
		})
		require.NoError(t, err)
		require.Empty(t, g.heard(), "A27")
		require.Equal(t, []string{first}, g.listed(t)[fork.SessionId].AdditionalDirectories)
		require.Empty(t, g.listed(t)[id].AdditionalDirectories)
	})
	t.Run("A28/close and delete", func(t *testing.T) {
		g := connect(t, state)
		_, err := g.CloseSession(t.Context(), sdk.CloseSessionRequest{SessionId: id})
		require.NoError(t, err)
		require.Contains(t, g.listed(t), id)
		_, err = g.UnstableDeleteSession(t.Context(), sdk.UnstableDeleteSessionRequest{SessionId: id})
		require.NoError(t, err)
		require.NotContains(t, g.listed(t), id)
	})
}

// The SDK's client takes a thousand and twenty-four notifications before its handler has seen the first, then closes
// the connection. It reads faster than it handles, so a history that is longer than that when it is merged is lost on it.
func TestA27_ALongLoadDoesNotOverflowTheGoSDKsClient(t *testing.T) {
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
