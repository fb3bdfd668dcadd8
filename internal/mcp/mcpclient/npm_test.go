package mcpclient_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	acpmcp "github.com/acp-agent/acp-agent/acp/mcp"
	"github.com/acp-agent/acp-agent/internal/mcp/mcpclient"
	"github.com/acp-agent/acp-agent/internal/test/mcptest"
	"github.com/acp-agent/acp-agent/internal/test/npmtest"
	"github.com/acp-agent/acp-agent/internal/test/proctest"
	"github.com/acp-agent/acp-agent/internal/test/roottest"
	"github.com/acp-agent/acp-agent/internal/test/volume"
)

// npmServer returns a server from npm.
func npmServer(name string, command []string, args ...string) mcpclient.Config {
	return mcpclient.Config{Name: name, Transport: acpmcp.Stdio, Command: command[0], Args: append(command[1:], args...)}
}

// read reads a file with server-filesystem.
func (f *fixture) read(path string) (string, error) {
	raw, err := json.Marshal(map[string]string{"path": path})
	require.NoError(f.t, err)
	return f.try("fs.read_text_file", string(raw))
}

// Clause M5.
func TestFirstCallOfServerFilesystem(t *testing.T) {
	server := npmServer("fs", npmtest.Filesystem(t))
	server.Policy = acpmcp.Policy{SettleWithoutRoots: patience, SettleAfterRoots: time.Second}
	starts := volume.Of(2, 100)
	dir := folder(t, "a.txt", "tangerine")
	w := roottest.Open(t, dir)
	starting := make(chan struct{}, 4)
	var calls sync.WaitGroup
	failed := make(chan error, starts)
	for range starts {
		f := newFixtureWith(t, starting, mcpclient.Options{Wait: time.Hour})
		f.change(w, server)
		calls.Go(func() {
			text, err := f.send(t.Context(), "fs.read_text_file", `{"path":"`+filepath.ToSlash(dir)+`/a.txt"}`)
			if err == nil && !strings.Contains(text, "tangerine") {
				err = &os.PathError{Op: "read", Path: text, Err: os.ErrPermission}
			}
			failed <- err
		})
	}
	calls.Wait()
	close(failed)
	for err := range failed {
		assert.NoError(t, err)
	}
}

// Clauses M1, M3.
func TestRootsOfServerFilesystem(t *testing.T) {
	server := npmServer("fs", npmtest.Filesystem(t))
	first, second, outside := folder(t, "a.txt", "one"), folder(t, "b.txt", "two"), folder(t, "c.txt", "three")
	link := filepath.Join(folder(t), "link")
	target := folder(t, "d.txt", "four")
	if err := os.Symlink(target, link); err != nil {
		t.Skip("no symbolic links here: ", err)
	}
	f := newFixture(t, mcpclient.Options{})
	f.change(roottest.Open(t, first, second, link), server)
	reads := func(path, expected string) {
		t.Helper()
		require.Eventually(t, func() bool { // a server may take longer to learn its roots than it is given
			got, err := f.read(path)
			return err == nil && got == expected
		}, patience, 20*time.Millisecond)
	}
	reads(filepath.Join(first, "a.txt"), "one")
	reads(filepath.Join(second, "b.txt"), "two")
	reads(filepath.Join(target, "d.txt"), "four")
	_, err := f.read(filepath.Join(outside, "c.txt"))
	require.ErrorContains(t, err, "outside allowed directories")

	f.change(roottest.Open(t, first), server)
	_, err = f.read(filepath.Join(second, "b.txt"))
	require.ErrorContains(t, err, "outside allowed directories", "the scope shrank, and it keeps a wider one if it is not restarted")
	reads(filepath.Join(first, "a.txt"), "one")
}

// Playwright's server names the browser's profile after a hash of its working directory, the first
// root, even without a browser.
//
// Clause M1.
func TestPlaywright(t *testing.T) {
	server := npmServer("p", npmtest.Playwright(t), "--headless", "--executable-path", proctest.Executable())
	server.Env = append(server.Env, mcpclient.Pair{Name: "XDG_CACHE_HOME", Value: t.TempDir()}, mcpclient.Pair{Name: proctest.Role, Value: "exit"})
	if runtime.GOOS != "linux" {
		t.Skip("only on Linux does Playwright keep profiles in XDG_CACHE_HOME, where this test looks")
	}
	top := folder(t, "z/f", "", "a/f", "")
	z, a := filepath.Join(top, "z"), filepath.Join(top, "a")
	f := newFixture(t, mcpclient.Options{})
	f.change(roottest.Open(t, z, a), server)
	text, err := f.try("p.browser_navigate", `{"url":"data:text/html,hi"}`)
	require.Error(t, err, "there is no browser")
	sum := sha256.Sum256([]byte(z))
	require.Contains(t, text, "mcp-chrome-"+hex.EncodeToString(sum[:])[:7])
	require.Equal(t, strings.Split(uris(t, z, a), "\n"), f.Servers()[0].SentRoots)
}

// Clause M7.
func TestTypeScriptModernServer(t *testing.T) {
	record := proctest.NewRecord(t)
	server := mcptest.Self("m", "tee", record.Env())
	server.Args = npmtest.Modern(t)
	z, a := folder(t), folder(t)
	f := newFixture(t, mcpclient.Options{})
	f.change(roottest.Open(t, z, a), server)
	require.Equal(t, uris(t, z, a), f.call("m.roots", "{}"))
	require.Equal(t, "2026-07-28", f.Servers()[0].Revision)
	f.change(roottest.Open(t, z, a, folder(t)), server)
	f.call("m.roots", "{}")
	f.change(roottest.Open(t, z, a), server)
	require.Equal(t, uris(t, z, a), f.call("m.roots", "{}"))
	require.NoError(t, f.Close(t.Context()))
	sent := record.Lines(t)
	require.GreaterOrEqual(t, len(sent), 6)
	for _, line := range sent {
		var m struct {
			Method string
			Params struct {
				Meta map[string]json.RawMessage `json:"_meta"`
			}
		}
		require.NoError(t, json.Unmarshal([]byte(line), &m))
		require.Contains(t, []string{"server/discover", "subscriptions/listen", "tools/list", "tools/call", "notifications/cancelled"}, m.Method, line)
		if !strings.HasPrefix(m.Method, "notifications/") {
			require.JSONEq(t, `{"roots":{}}`, string(m.Params.Meta["io.modelcontextprotocol/clientCapabilities"]), line)
		}
	}
}
