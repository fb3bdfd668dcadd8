package acp_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/backend"
)

// serve makes the backend known to an agent.
func (r *scripted) serve() backend.Backend { return r }

// hosts are those of the sessions that open from now on.
func (r *scripted) hosts() <-chan backend.Host {
	hosts := make(chan backend.Host, 10)
	r.opened = func(_ backend.Activation, h backend.Host) { hosts <- h }
	return hosts
}

// write writes a file below a root.
func write(t *testing.T, root, name, text string) {
	t.Helper()
	path := filepath.Join(root, filepath.FromSlash(name))
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

// Clause A25.
func TestCatalogAtOpen(t *testing.T) {
	r := &scripted{}
	c := served(t, acp.Options{Backend: r.serve})
	a, b := folder(t), folder(t)
	write(t, a, "AGENTS.md", "be kind")
	write(t, b, ".claude/commands/deploy.md", "deploy it")
	hosts := r.hosts()
	id := c.open(a, b)
	require.Len(t, (<-hosts).Catalog().Artifacts(), 2, "in Open already")
	require.Equal(t, []string{"instruction AGENTS.md of 0, command deploy of 1"},
		c.texts(id, "catalog"))

	c.call("session/load", rootsParams(id, a, []string{}...))
	require.Len(t, (<-hosts).Catalog().Artifacts(), 1, "A12: of the new roots")
	require.Equal(t, []string{"instruction AGENTS.md of 0"}, c.texts(id, "catalog"))
	other := c.open(b)
	require.Equal(t, []string{"command deploy of 0"}, c.texts(other, "catalog"), "A22")
	require.Equal(t, []string{"instruction AGENTS.md of 0"}, c.texts(id, "catalog"))
}

// Clause A25.
func TestCatalogAtPrompt(t *testing.T) {
	c := served(t, acp.Options{})
	a := folder(t)
	id := c.open(a)
	require.Equal(t, []string{""}, c.texts(id, "catalog"))
	write(t, a, "AGENTS.md", "be kind")
	require.Equal(t, []string{"instruction AGENTS.md of 0"}, c.texts(id, "catalog"))
	write(t, a, ".claude/commands/deploy.md", "deploy it")
	require.Equal(t, []string{"instruction AGENTS.md of 0, command deploy of 0"},
		c.texts(id, "catalog"))
	require.NoError(t, os.Remove(filepath.Join(a, "AGENTS.md")))
	require.Equal(t, []string{"command deploy of 0"}, c.texts(id, "catalog"))
}
