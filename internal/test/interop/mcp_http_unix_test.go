//go:build unix

package interop

//lint:file-ignore SA1019 the MCP SDK deprecates roots and log messages (SEP-2577); they are supported for existing clients and servers

import (
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/interop/program"
	"github.com/acp-agent/acp-agent/internal/test/logtest"
	"github.com/acp-agent/acp-agent/internal/test/mcptest"
)

// httpServer is a process that serves MCP over HTTP.
type httpServer struct {
	cmd    *exec.Cmd
	stderr logtest.Text
}

// serveHTTP starts the program, and waits until it serves. It is ended with the test.
func serveHTTP(t *testing.T, args ...string) *httpServer {
	t.Helper()
	s := &httpServer{cmd: exec.Command(program.Path(), append([]string{"mcp"}, args...)...)}
	s.cmd.Stderr = &s.stderr
	require.NoError(t, s.cmd.Start())
	t.Cleanup(func() {
		_ = s.cmd.Process.Signal(syscall.SIGTERM)
		_ = s.cmd.Wait()
	})
	require.Eventually(t, func() bool { return strings.Contains(s.stderr.String(), "serving MCP") }, patience, time.Millisecond)
	return s
}

// find returns what the group of a pattern matches in what the program printed.
func (s *httpServer) find(t *testing.T, pattern string) string {
	t.Helper()
	var found []string
	require.Eventually(t, func() bool {
		found = regexp.MustCompile(pattern).FindStringSubmatch(s.stderr.String())
		return found != nil
	}, patience, time.Millisecond)
	return found[1]
}

const (
	urlPattern   = `serving MCP on (http://\S+)\n`
	tokenPattern = `Authorization: Bearer (\S+)\n`
)

// bearer sends a token with every request.
type bearer struct {
	http.Transport
	token string
}

func (b *bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if b.token != "" {
		r.Header.Set("Authorization", "Bearer "+b.token)
	}
	return b.Transport.RoundTrip(r)
}

// read reads a file as an MCP client with a root of its own.
func (b *bearer) read(t *testing.T, url, root, path string) (string, error) {
	t.Helper()
	b.DisableKeepAlives = true
	client := mcp.NewClient(&mcp.Implementation{Name: "client"}, nil)
	client.AddRoots(&mcp.Root{URI: mcptest.URIs(t, root)[0]})
	session, err := client.Connect(within(t), &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: b}, MaxRetries: -1},
		&mcp.ClientSessionOptions{ProtocolVersion: "2026-07-28"})
	if err != nil {
		return "", err
	}
	defer session.Close()
	result, err := session.CallTool(within(t), &mcp.CallToolParams{Name: "read_file", Arguments: map[string]any{"path": path}})
	if err != nil {
		return "", err
	}
	return result.Content[0].(*mcp.TextContent).Text, nil
}

// Another user, or a process in a sandbox that shares the network, gets no file of the user.
func TestMCPHTTP(t *testing.T) {
	t.Parallel()
	allowed, victim := dirtest.Tree{"f": "mine"}.Plant(t), dirtest.Tree{"secret": "the secret"}.Plant(t)
	secret := filepath.Join(victim, "secret")

	t.Run("without the token", func(t *testing.T) {
		s := serveHTTP(t, "--http", "127.0.0.1:0", "--any-dir")
		url := s.find(t, urlPattern)
		s.find(t, `(--any-dir: clients can use every folder)`)
		for _, token := range []string{"", "guess"} {
			_, err := (&bearer{token: token}).read(t, url, victim, secret)
			require.ErrorContains(t, err, "Unauthorized")
		}
		text, err := (&bearer{token: s.find(t, tokenPattern)}).read(t, url, victim, secret)
		require.NoError(t, err)
		require.Contains(t, text, "the secret", "the user's own client")
	})

	t.Run("outside the directories", func(t *testing.T) {
		s := serveHTTP(t, "--http", "127.0.0.1:0", "--within", allowed)
		b := &bearer{token: s.find(t, tokenPattern)}
		text, err := b.read(t, s.find(t, urlPattern), victim, secret)
		require.NoError(t, err)
		require.NotContains(t, text, "the secret")
		text, err = b.read(t, s.find(t, urlPattern), allowed, "f")
		require.NoError(t, err)
		require.Contains(t, text, "mine")
	})

	t.Run("each start has another token", func(t *testing.T) {
		one := serveHTTP(t, "--http", "127.0.0.1:0", "--dir", allowed).find(t, tokenPattern)
		other := serveHTTP(t, "--http", "127.0.0.1:0", "--dir", allowed).find(t, tokenPattern)
		require.NotEqual(t, one, other)
		require.GreaterOrEqual(t, len(one), 26, "130 bits in letters of base32")
	})

	t.Run("token file", func(t *testing.T) {
		path := file(t, "token", "0123456789abcdef\n")
		s := serveHTTP(t, "--http", "127.0.0.1:0", "--dir", allowed, "--token-file", path)
		url := s.find(t, urlPattern)
		require.Equal(t, path, s.find(t, `the token in (\S+)\n`))
		text, err := (&bearer{token: "0123456789abcdef"}).read(t, url, allowed, "f")
		require.NoError(t, err)
		require.Contains(t, text, "mine")
		_, err = (&bearer{token: "guess"}).read(t, url, allowed, "f")
		require.ErrorContains(t, err, "Unauthorized")
		require.NotContains(t, s.stderr.String(), "0123456789abcdef")
	})

	t.Run("without authentication", func(t *testing.T) {
		s := serveHTTP(t, "--http", "127.0.0.1:0", "--dir", allowed, "--no-auth")
		text, err := (&bearer{}).read(t, s.find(t, urlPattern), allowed, "f")
		require.NoError(t, err)
		require.Contains(t, text, "mine")
		require.Contains(t, s.stderr.String(), "every user of this machine can use the server")
	})
}
