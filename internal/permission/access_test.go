package permission_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/permission"
	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/roottest"
	"github.com/acp-agent/acp-agent/workspace"
)

// A rule is about the file that was opened, whatever led there, and about the name that led there.
//
// Clause R5.
func TestGuardedFiles(t *testing.T) {
	root := dirtest.New(t, ".env", "x", "sub/.env", "x", "sub/deep/.env", "x", "secrets/a/key", "x",
		"a.txt", "x", "Keys/x.PEM", "x")
	inner := filepath.Join(root, "sub")
	for link, target := range map[string]string{
		"to.txt": ".env", "sub/l": ".env", "dir": "secrets", "named.env": "a.txt", "up": "sub/deep"} {
		require.NoError(t, os.Symlink(target, filepath.Join(root, link)))
	}
	w := roottest.Open(t, root, inner)
	for _, c := range []struct{ rule, refused, allowed string }{
		{"read .env", ".env to.txt sub/.env sub/l up/../.env", "sub/deep/.env a.txt"},
		{"read sub/.env", "sub/.env sub/l up/../.env", ".env sub/deep/.env"},
		{"read **/.env", ".env to.txt sub/l sub/deep/.env", "a.txt named.env"},
		{"read secrets", "secrets/a/key dir/a/key", "a.txt"},
		{"read dir/**", "dir/a/key", "secrets/a/key"},
		{"read named.env", "named.env", "a.txt"},
		{"read **/*.pem", "Keys/x.PEM", "a.txt"},
		{"read keys/**", "Keys/x.PEM", "a.txt"},
		{"read", "a.txt .env dir/a/key", ""},
		{"edit", "", "a.txt .env"},
		{"run cat", "", "a.txt .env"},
	} {
		for _, effect := range []permission.Effect{permission.Deny, permission.Ask} {
			p := permission.Permissions{Deny: []string{c.rule}}
			if effect == permission.Ask {
				p = permission.Permissions{Ask: []string{c.rule}, Allow: []string{"read"}}
			}
			rules, err := p.Rules()
			require.NoError(t, err)
			guarded := rules.Guard(w)
			for _, path := range strings.Fields(c.refused) {
				_, err := guarded.Open(path)
				rule, ok := err.(interface{ Unwrap() error })
				require.True(t, ok, "%s: %s: %v", c.rule, path, err)
				require.ErrorContains(t, rule.Unwrap(), `the user's rule "`+c.rule+`" `, path)
				_, asks := permission.Asks(err)
				require.Equal(t, effect == permission.Ask, asks, path)
			}
			if c.rule == "read **/*.pem" {
				err := guarded.Rename("Keys", "moved", workspace.Ref{}, workspace.Ref{})
				require.ErrorContains(t, err, c.rule, "with what is in it")
			}
			for _, path := range strings.Fields(c.allowed) {
				f, err := guarded.Open(path)
				require.NoError(t, err, "%s: %s", c.rule, path)
				require.NoError(t, f.Close())
			}
		}
	}
	none, err := permission.Permissions{Allow: []string{"read"}, Deny: []string{"run x"}}.Rules()
	require.NoError(t, err)
	require.Same(t, w, none.Guard(w), "nothing is checked")
}
