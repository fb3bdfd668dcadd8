package permission

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/permission/consent"
	"github.com/acp-agent/acp-agent/internal/test/tabletest"
	"github.com/acp-agent/acp-agent/internal/worktree"
	"github.com/acp-agent/acp-agent/workspace"
)

// allocated returns how many bytes do allocates.
func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// However long a request is, it is decided with little memory. What is too long to look for the
// words of rules is asked about.
//
// Clause R2.
func TestLongRequests(t *testing.T) {
	g := newGround(t)
	const size = 256 << 10
	rules := g.rules(t, "deny run rm", "deny run git push", "deny read **/.env", "deny read a/**/b/**/c/**/d", "deny fetch evil.com", "deny edit secrets/**",
		"allow run ./run.sh", "allow tool db.*", "allow edit", "allow read", "allow fetch docs.example.com")
	for _, part := range []string{"$(", "a;", "a ", "`", "\\x41", "${a}", "../", "sh -c '", "{\"a\":\"", "é"} {
		long := strings.Repeat(part, size/len(part))
		raw, err := json.Marshal(long)
		require.NoError(t, err)
		text := string(raw)
		for name, call := range map[string]string{
			"command":           `{"kind":"execute","rawInput":{"command":` + text + `}}`,
			"title":             `{"kind":"execute","title":` + text + `,"rawInput":{"command":"./run.sh"}}`,
			"list":              `{"kind":"execute","rawInput":{"command":["./run.sh",` + text + `]}}`,
			"unknown":           `{"kind":"other","rawInput":{"x":` + text + `}}`,
			"argument":          `{"kind":"other","rawInput":{"x":` + text + `},"_meta":{"toolName":"mcp__db__q"}}`,
			"command of a tool": `{"kind":"other","rawInput":{"command":` + text + `},"_meta":{"toolName":"mcp__db__q"}}`,
			"path":              `{"kind":"edit","rawInput":{"file_path":` + text + `}}`,
			"reading":           `{"kind":"read","rawInput":{"path":` + text + `}}`,
			"address":           `{"kind":"fetch","rawInput":{"url":` + text + `}}`,
		} {
			action := g.ask(t, "qwen", call)
			var got Verdict
			used := allocated(func() { got = Decide(action, rules) })
			require.Equal(t, Ask, got.Effect, "%s of %q: %v", name, part, got)
			require.Less(t, used, uint64(64<<20), "%s of %q", name, part)
		}
	}
	for _, part := range []string{"$(", "a;", "a "} { // JSON has the text several times
		long := strings.Repeat(part, 15_000_000)
		used := allocated(func() {
			action, _ := g.place.Command(long, g.root)
			require.Equal(t, Ask, Decide(action, rules).Effect)
		})
		require.Less(t, used, uint64(64<<20), "reading %q", part)
	}
}

// Many parts of a request are looked at up to a limit.
//
// Clause R2.
func TestManyParts(t *testing.T) {
	g := newGround(t)
	rules := g.rules(t, "deny read **/.env", "deny edit secrets/**", "deny run rm", "allow edit", "allow read", "allow tool db.*", "allow run ./run.sh")
	many := func(n int, format string) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(format, i))
		}
		return strings.Join(all, ",")
	}
	for name, call := range map[string]func(n int) string{
		"locations": func(n int) string { return `{"kind":"edit","locations":[` + many(n, `{"path":"{root}/f%d"}`) + `]}` },
		"locations of a command": func(n int) string {
			return `{"kind":"execute","rawInput":{"command":"./run.sh"},"locations":[` + many(n, `{"path":"{root}/f%d"}`) + `]}`
		},
		"locations of a reading": func(n int) string { return `{"kind":"read","locations":[` + many(n, `{"path":"{root}/f%d"}`) + `]}` },
		"diffs": func(n int) string {
			return `{"kind":"edit","content":[` + many(n, `{"type":"diff","path":"{root}/f%d","newText":"x"}`) + `]}`
		},
		"diffs outside": func(n int) string {
			return `{"kind":"edit","content":[` + many(n, `{"type":"diff","path":"/f%d","newText":"x"}`) + `]}`
		},
		"names": func(n int) string { return `{"kind":"read","rawInput":{"path":[` + many(n, `"f%d"`) + `]}}` },
		"paths": func(n int) string { return `{"kind":"edit","rawInput":{"files":[` + many(n, `"{root}/f%d"`) + `]}}` },
		"patch": func(n int) string {
			return `{"kind":"edit","rawInput":{"patch":"` + many(n, `\n*** Add File: f%d`) + `"}}`
		},
		"words":    func(n int) string { return `{"kind":"execute","rawInput":{"command":[` + many(n, `"f%d"`) + `]}}` },
		"commands": func(n int) string { return `{"kind":"execute","rawInput":{"commands":[` + many(n, `"f%d"`) + `]}}` },
		"arguments": func(n int) string {
			return `{"rawInput":{"x":[` + many(n, `"f%d"`) + `]},"_meta":{"toolName":"mcp__db__q"}}`
		},
		"nested commands": func(n int) string {
			return `{"rawInput":{"x":[` + many(n, `{"command":"f%d"}`) + `]},"_meta":{"toolName":"mcp__db__q"}}`
		},
		"members": func(n int) string {
			return `{"rawInput":{` + many(n, `"f%d":"x"`) + `},"_meta":{"toolName":"mcp__db__q"}}`
		},
		"depth": func(n int) string {
			n = min(n, 5000)
			return `{"rawInput":{"x":` + strings.Repeat("[", n) + `"x"` + strings.Repeat("]", n) + `},"_meta":{"toolName":"mcp__db__q"}}`
		},
	} {
		t.Run(name, func(t *testing.T) {
			action := g.ask(t, "qwen", call(50_000))
			used := allocated(func() {
				if got := Decide(action, rules); name != "depth" {
					require.Equal(t, Ask, got.Effect, "%v", got)
				}
			})
			require.Less(t, used, uint64(64<<20))
			require.LessOrEqual(t, max(len(action.Files), len(action.Hints.Names)), 2*(maxWords+maxMentions))
		})
	}
	denied := `{"kind":"edit","locations":[` + many(500, `{"path":"{root}/f%d"}`) + `,{"path":"{root}/secrets/key"}]}`
	require.Equal(t, Deny, Decide(g.ask(t, "", denied), rules).Effect)
}

// The rules are compared with each file that is read, however many there are of both. Nothing is
// made for each rule then.
//
// Clause R5.
func TestManyRules(t *testing.T) {
	g := newVault(t)
	info, err := g.place.Workspace.Stat(filepath.Join(g.root, "secrets/deep/x"))
	require.NoError(t, err)
	access := workspace.Access{Path: info.Ref().Path(), At: info.Ref()}
	used := func(n int) uint64 {
		var written []string
		for i := range n {
			written = append(written, fmt.Sprintf("read **/dir%d/*.key%d", i, i))
		}
		rules, err := Permissions{Ask: written, Deny: written}.Rules()
		require.NoError(t, err)
		guarded := rules.Guard(g.place.Workspace)
		return allocated(func() { require.NoError(t, guarded.Check(access)) })
	}
	require.Less(t, used(10_000), 4*used(1)+64<<10)
}

// The rules that were written for a folder hold for the same files in a session below it.
//
// Clause R5.
func TestRulesBelow(t *testing.T) {
	for _, c := range []struct {
		folder, rule string
		also         []string
	}{
		{"config", "read config/prod.env", []string{"read prod.env"}},
		{"Config/", "read config/prod.env", []string{"read prod.env"}},
		{"config/x", "read config/prod.env", nil},
		{"a/b", "edit a/*/c/**", []string{"edit c/**"}},
		{"secrets", "read secrets", []string{"read **"}},
		{"secrets/deep/er", "read secrets", []string{"read **"}},
		{"secrets/deep", "read secrets/**", []string{"read **"}},
		{"app/keys", "read **/keys", []string{"read **/keys", "read **"}},
		{"x", "read **/.env", nil},
		{"x.d", "read *.d", nil},
		{"a/x/b", "read a/**/b/c", []string{"read **/b/c", "read c"}},
		{"other", "read secrets/**", nil},
		{".", "read secrets/**", nil},
		{".", "read */x", nil},
		{"git", "run git push", nil},
		{"x", "read", nil},
	} {
		want := []string{c.rule}
		for _, one := range c.also {
			if one != c.rule {
				want = append(want, one)
			}
		}
		got := Permissions{Deny: []string{c.rule}, Ask: []string{c.rule}, Allow: []string{"read"}}.Below(c.folder)
		require.Equal(t, Permissions{Deny: want, Ask: want}, got, "%s in %s", c.rule, c.folder)
	}
}

// What a command gets besides its line obeys rules too.
//
// Clause R5.
func TestRulesOfWhatTerminalsCarry(t *testing.T) {
	g := newVault(t)
	t.Setenv("OWN", "secrets/key.pem")
	deny := []string{"deny read secrets/**", "deny run git push", "deny fetch evil.com", "deny read pnpm/store/.env"}
	rules, none := g.rules(t, deny...), g.rules(t, "allow read")
	for want, all := range tabletest.Read(t, "terminals.txt") {
		for _, params := range all {
			a, _ := g.place.Command("cat a.txt store/.env", g.root)
			require.NoError(t, g.place.Carry(&a, []byte(g.expand(params))))
			require.NoError(t, none.Check(a), params)
			err := rules.Check(a)
			_, asks := Asks(err)
			require.Equal(t, []bool{Effect(want) != Allow, Effect(want) == Ask}, []bool{err != nil, asks}, "%s: %v", params, err)
		}
	}
	a, _ := g.place.Command("ls", g.root)
	require.ErrorContains(t, g.place.Carry(&a, []byte(`{"env":[],"env":[{"name":"X","value":"secrets/key.pem"}]}`)), "env")
}

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
	return g, NewPermits(NewSessionGrants(""), w, consent.NewStore(""), worktree.Origins{},
		func(workspace.Dir) *Permissions { return nil })
}

// Commands that change something in a folder that may only be read are refused, those that may are
// asked about, and those that read are not affected.
//
// Clause A39.
func TestCommandsInReadOnlyFolders(t *testing.T) {
	g, p := readOnlyGround(t)
	expect := func(want Effect, line, dir string) {
		t.Helper()
		a, _ := g.place.Command(line, dir)
		err := p.Check(a)
		if want == Allow {
			require.NoError(t, err, line)
			return
		}
		require.ErrorContains(t, err, "the folder "+g.other+" is read-only", line)
		require.Equal(t, want, err.(*RuleError).Effect, line)
	}
	for want, lines := range tabletest.Read(t, "readonly.txt") {
		for _, line := range lines {
			expect(Effect(want), g.expand(line), g.root)
		}
	}
	// A link outside of the session's folders leads into it, too.
	outside := t.TempDir()
	alias, below := filepath.Join(outside, "alias"), filepath.Join(outside, "below")
	require.NoError(t, os.Symlink(g.other, alias))
	require.NoError(t, os.Mkdir(filepath.Join(g.other, "sub"), 0o700))
	require.NoError(t, os.Symlink(g.other+"/sub", below))
	require.NoError(t, os.Symlink(g.root, filepath.Join(g.other, "out")))
	for _, line := range []string{"rm " + g.other + "/out", "rm " + below + "/../out", "mv " + alias + "/out x",
		"touch " + alias + "/new", "rm " + below + "/../o.txt", "rm " + alias + "/o.txt", "mkdir -p " + alias + "/a/b",
		"echo x > tonew", "tee tolink", "sh -c 'echo x > " + alias + "/new'"} {
		expect(Deny, line, g.root)
	}
	expect(Allow, "touch loop", g.root)
	// A command that runs in the folder, and names nothing.
	for line, want := range map[string]Effect{"touch new": Deny, "git commit -m x": Deny, "make": Ask, "ls": Allow} {
		expect(want, line, g.other)
	}
	build, _ := g.place.Command("make", g.other)
	p.AllowExactly(build)
	v, err := p.Decide(build)
	require.NoError(t, err)
	require.Equal(t, Ask, v.Effect, "whatever else is allowed")
}

// A file is in such a folder however its path is spelled, unless it is in another root there.
//
// Clause A39.
func TestFilesInReadOnlyFolders(t *testing.T) {
	top := t.TempDir()
	var roots []workspace.Root
	for _, name := range []string{"a:b/Lib", "a:b/Lib/own", "a:b/lib", "a:b"} {
		real, err := workspace.ParseDir(filepath.Join(top, name))
		require.NoError(t, err)
		roots = append(roots, workspace.Root{Real: real})
	}
	for name, want := range map[string]bool{"a:b/Lib": true, "a:b/Lib/x": true, "a:b/LIB/x": true, "a:b/Lib/Own/x": true,
		"a:b/Lib/own/x": false, "a:b/lib/x": false, "a:b/Library": false, "a:b/x": false, "a/x": false} {
		file := File{Path: filepath.Join(top, name)}
		require.Equal(t, want, readOnlyRule{roots[0], roots}.has(file), name)
	}
}

// Edits in such a folder are denied whatever the user's rules allow, and what reads is allowed as
// elsewhere.
//
// Clause A39.
func TestEditsInReadOnlyFolders(t *testing.T) {
	g, _ := readOnlyGround(t)
	p := NewPermits(NewSessionGrants(""), g.place.Workspace, consent.NewStore(""), worktree.Origins{},
		func(workspace.Dir) *Permissions { return &Permissions{Allow: []string{"edit", "read", "tool db.*"}} })
	decide := func(a Action) Effect {
		v, err := p.Decide(a)
		require.NoError(t, err)
		return v.Effect
	}
	require.NoError(t, os.Symlink(filepath.Join(g.root, "a.txt"), filepath.Join(g.other, "out")))
	for name, want := range map[string]Effect{
		"{root}/a.txt": Allow, "{other}/o.txt": Deny, "{other}/new": Deny, "{root}/tolib/new": Deny,
		"{other}/out": Deny, "{root}/toofile": Deny, "{root}/../lib/o.txt": Deny, "{root}/tonew": Deny, "{root}/tolink": Deny,
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
