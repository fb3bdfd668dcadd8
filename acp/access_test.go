package acp_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
)

// reach has the session ask the client for a file, and returns what came of it.
func (c *client) reach(id, path string) string {
	c.t.Helper()
	c.mu.Lock()
	c.answers = func(message) string { return `{"content":"read"}` }
	c.mu.Unlock()
	return c.texts(id, "call fs/read_text_file "+encode(map[string]string{"path": path}))[0]
}

func TestA12_FileAccessFollowsTheRootsOfALoad(t *testing.T) {
	for _, method := range opening[1:3] {
		t.Run(method, func(t *testing.T) {
			c := connect(t, acp.Options{})
			c.initialize()
			a, b, d := folder(t), folder(t), folder(t)
			for _, dir := range []string{a, b, d} {
				write(t, dir, "file", "x")
			}
			file := func(dir string) string { return filepath.Join(dir, "file") }
			id := c.open(a, b)
			require.Contains(t, c.reach(id, file(b)), "read")
			require.Contains(t, c.reach(id, file(d)), "outside")
			c.call(method, rootsParams(id, a, d))
			require.Contains(t, c.reach(id, file(a)), "read")
			require.Contains(t, c.reach(id, file(d)), "read")
			require.Contains(t, c.reach(id, file(b)), "outside")
			require.NotNil(t, c.try(method, rootsParams(id, a, b, filepath.Join(a, "missing"))).Error)
			require.Contains(t, c.reach(id, file(d)), "read", "a failed one changes nothing")
			require.Contains(t, c.reach(id, file(b)), "outside")
		})
	}
}
