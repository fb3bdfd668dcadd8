package workspace_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/containmenttest"
	"github.com/acp-agent/acp-agent/internal/test/fusetest"
	"github.com/acp-agent/acp-agent/workspace"
)

// What a policy allows or denies it allows or denies in every spelling that the disk takes for the
// same directory. Such roots have one real path, and so the first owns both.
//
// Clause A6.
func TestPolicyOfOtherSpellings(t *testing.T) {
	if !containmenttest.InNamespace(t) {
		return
	}
	disk := newGrounds(t).a
	fusetest.Mount(t, disk, "Team/\u00c4pp/keys", "Other")
	in := func(path string) string { return filepath.Join(disk, filepath.FromSlash(path)) }
	teams := []string{"Team", "TEAM", "team"}
	apps := []string{"Team/\u00c4pp", "team/a\u0308pp", "TEAM/A\u0308PP"}
	for _, team := range teams {
		for _, only := range []bool{false, true} {
			o := workspace.Options{Policy: workspace.Policy{
				Allow: dirs(t, in(team)), OnlyAllowed: only}}
			for _, app := range apps {
				openWith(t, o, in(app))
			}
			_, err := workspace.Open(t.Context(), mustRoots(t, in("oTHER")), o)
			require.ErrorContains(t, err, "in none of the folders that you may open", team)
		}
	}
	for _, app := range apps {
		for _, keys := range []string{"Team/\u00c4pp/keys", "team/a\u0308PP/KEYS"} {
			o := workspace.Options{Policy: workspace.Policy{Deny: dirs(t, in(keys))}}
			ws := openWith(t, o, in(app))
			var denied *workspace.DeniedError
			for _, path := range []string{"keys", "Keys/x", in(app + "/KEYS")} {
				_, err := ws.Lstat(path)
				require.ErrorAs(t, err, &denied, "%q in %q", path, app)
			}
			_, err := workspace.Open(t.Context(), mustRoots(t, in("TEAM/\u00c4PP/Keys")), o)
			require.Error(t, err)
		}
	}
	ws := openWith(t, workspace.Options{}, in(apps[0]), in(apps[1]))
	require.Equal(t, ws.Root(0).Real, ws.Root(1).Real)
	require.Equal(t, in(apps[1]), ws.Root(1).Dir.String())
}
