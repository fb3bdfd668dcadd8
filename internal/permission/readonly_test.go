package permission

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/permission/consent"
	"github.com/acp-agent/acp-agent/internal/test/tabletest"
	"github.com/acp-agent/acp-agent/internal/worktree"
	"github.com/acp-agent/acp-agent/workspace"
)

// readOnlyGround has a working directory, a root that may only be read, and links to it.
func readOnlyGround(t *testing.T) (g ground, p *Permits) {
	t.Helper()
	g = newGround(t)
	require.NoError(t, os.Symlink(g.other, filepath.Join(g.root, "tolib")))
	require.NoError(t, os.Symlink(g.other+"/o.txt", filepath.Join(g.root, "toofile")))
	require.NoError(t, os.Symlink("../lib/new", filepath.Join(g.root, "tonew")))
	require.NoError(t, os.Symlink("tonew", filepath.Join(g.root, "tolink")))
	require.NoError(t, os.Symlink("loop", filepath.Join(g.root, "loop")))
	roots := g.place.Workspace.Roots().Granting(func(dir workspace.Dir) workspace.Grant {
		if dir.String() == g.other {
			return workspace.ReadOnly
		}
		return workspace.ReadWrite
	})
	w, err := workspace.Open(t.Context(), roots, workspace.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.Close()) })
	g.place.Workspace = w
	return g, NewPermits("", w, consent.NewStore(""), worktree.Origins{},
		func(workspace.Dir) *Permissions { return nil })
}

// Commands that change something in a folder that may only be read are refused, those that may are
// asked about, and those that read are not affected.
//
// Clause A39.
func TestCommandsInReadOnlyFolders(t *testing.T) {
	g, p := readOnlyGround(t)
	for want, lines := range tabletest.Read(t, "readonly.txt") {
		for _, line := range lines {
			a, _ := g.place.Command(g.expand(line), g.root)
			err := p.Check(a)
			got := Allow
			if refused, is := err.(*RuleError); is {
				got = refused.Effect
				require.ErrorContains(t, err, "the folder "+g.other+" is read-only", line)
			}
			require.Equal(t, Effect(want), got, line)
		}
	}
	// A link outside of the session's folders leads into it, too.
	alias := filepath.Join(t.TempDir(), "alias")
	require.NoError(t, os.Symlink(g.other, alias))
	for _, line := range []string{"touch " + alias + "/new", "rm " + alias + "/o.txt", "mkdir -p " + alias + "/a/b",
		"echo x > tonew", "tee tolink", "sh -c 'echo x > " + alias + "/new'"} {
		a, _ := g.place.Command(line, g.root)
		refused, is := p.Check(a).(*RuleError)
		require.True(t, is, line)
		require.Equal(t, Deny, refused.Effect, line)
	}
	a, _ := g.place.Command("touch loop", g.root)
	require.NoError(t, p.Check(a))
	// A command that runs in the folder, and names nothing.
	for line, want := range map[string]Effect{"touch new": Deny, "git commit -m x": Deny, "make": Ask, "ls": ""} {
		a, _ := g.place.Command(line, g.other)
		got := Effect("")
		if refused, is := p.Check(a).(*RuleError); is {
			got = refused.Effect
		}
		require.Equal(t, want, got, line)
	}
}

// Edits in such a folder are denied whatever the user's rules allow, and what reads is allowed as
// elsewhere.
//
// Clause A39.
func TestEditsInReadOnlyFolders(t *testing.T) {
	g, _ := readOnlyGround(t)
	p := NewPermits("", g.place.Workspace, consent.NewStore(""), worktree.Origins{},
		func(workspace.Dir) *Permissions { return &Permissions{Allow: []string{"edit", "read", "tool db.*"}} })
	decide := func(a Action) Effect {
		v, err := p.Decide(g.place.Workspace, a)
		require.NoError(t, err)
		return v.Effect
	}
	for name, want := range map[string]Effect{
		"{root}/a.txt": Allow, "{other}/o.txt": Deny, "{other}/new": Deny, "{root}/tolib/new": Deny,
		"{root}/toofile": Deny, "{root}/../lib/o.txt": Deny, "{root}/tonew": Deny, "{root}/tolink": Deny,
	} {
		require.Equal(t, want, decide(g.place.Access(Edit, g.expand(name))), name)
	}
	require.Equal(t, Allow, decide(g.place.Access(Read, g.expand("{other}/o.txt"))))
	call := func(tool, arguments string) Action {
		return g.place.ToolCall(ServerTool{Server: "db", Name: tool, Config: "1"}, []byte(g.expand(arguments)))
	}
	patch := `{"kind":"edit","rawInput":{"file_path":"{root}/a.txt","diff":"+++ {FILE}/o.txt\n"}}`
	require.Equal(t, Ask, decide(g.ask(t, "", strings.Replace(patch, "{FILE}", g.other, 1))))
	require.Equal(t, Ask, decide(g.ask(t, "", strings.Replace(patch, "{FILE}", "../lib", 1))))
	require.Equal(t, Allow, decide(call("x", `{"path":"{root}/a.txt"}`)))
	require.Equal(t, Ask, decide(call("x", `{"path":"{other}/o.txt"}`)))
	require.Equal(t, Deny, decide(call("x", `{"command":"rm {other}/o.txt"}`)))
}
