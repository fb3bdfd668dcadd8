package conformance

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/workspace"
)

// serverProgram is how the server of docs/embedding.md begins.
const serverProgram = "// Command server "

// The server of docs/embedding.md is short, and keeps its users apart.
//
// Clauses N1, N4.
func TestServerProgram(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(repository, "docs", "embedding.md"))
	require.NoError(t, err)
	source := ""
	for _, m := range goSnippet.FindAllStringSubmatch(string(page), -1) {
		if strings.HasPrefix(m[1], serverProgram) {
			source = m[1]
		}
	}
	require.Less(t, strings.Count(source, "\n"), 80)
	dir, anns, bobs := t.TempDir(), dirtest.New(t), dirtest.New(t)
	program, users := filepath.Join(dir, "server"), filepath.Join(dir, "users.json")
	compileTo(t, program, source)
	list, err := json.Marshal(map[string]any{
		"token-a": map[string]any{"name": "ann", "folder": anns},
		"token-b": map[string]any{"name": "bob", "folder": bobs},
	})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(users, list, 0o600))

	server := exec.CommandContext(t.Context(), program, users, filepath.Join(dir, "state"), "127.0.0.1:0")
	out, err := server.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, server.Start())
	address, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	connect := func(token string) *client.Client {
		conn, err := net.Dial("tcp", strings.TrimSpace(address))
		require.NoError(t, err)
		_, err = io.WriteString(conn, token+"\n")
		require.NoError(t, err)
		c := client.New(conn, conn, client.Options{})
		served := make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			defer close(served)
			_ = c.Serve(ctx)
		}()
		t.Cleanup(func() {
			cancel()
			<-served
			_ = conn.Close()
		})
		return c
	}
	roots := func(path string) client.Setup {
		roots, err := workspace.NewRoots(path, nil)
		require.NoError(t, err)
		return client.Setup{Roots: roots}
	}

	ann := connect("token-a")
	_, err = ann.Initialize(t.Context())
	require.NoError(t, err)
	s, err := ann.NewSession(t.Context(), roots(anns))
	require.NoError(t, err)
	end, err := ann.Prompt(t.Context(), s.ID, sdk.TextBlock("/help"))
	require.NoError(t, err)
	require.Equal(t, sdk.StopReasonEndTurn, end.StopReason)
	_, err = ann.NewSession(t.Context(), roots(bobs))
	require.ErrorContains(t, err, "refused by policy")

	bob := connect("token-b")
	_, err = bob.Initialize(t.Context())
	require.NoError(t, err)
	_, err = bob.LoadSession(t.Context(), s.ID, roots(bobs))
	require.ErrorContains(t, err, "no session")
	for range bob.Sessions(t.Context(), client.Query{}) {
		require.Fail(t, "bob sees a session")
	}

	stranger := connect("token-x")
	_, err = stranger.Initialize(t.Context())
	require.Error(t, err)
	require.NoError(t, server.Process.Signal(syscall.SIGTERM))
	require.NoError(t, server.Wait())
}
