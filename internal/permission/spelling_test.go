package permission

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/roottest"
	"github.com/acp-agent/acp-agent/internal/test/tabletest"
)

// hidden is the content of the files that must not be read.
const hidden = "HIDDEN-0815"

// newVault returns a repository with files that [vaultRules] deny to read, with several commits,
// links and a folder that is not tracked.
func newVault(t testing.TB) ground {
	t.Helper()
	top := dirtest.New(t, "vault/.env", hidden+"\n", "vault/secrets/key.pem", hidden+"\n", "vault/secrets/deep/x", "x\n",
		"vault/a.txt", "a\n", "vault/sub/b.txt", "b\n", "vault/sub/.env", hidden+"\n", "vault/plain/c.txt", "c\n",
		"vault/pnpm/store/lib/f", "f\n", "vault/pnpm/store/.env", hidden+"\n", "out/secret.txt", "1234\n")
	g := ground{root: filepath.Join(top, "vault"), out: filepath.Join(top, "out")}
	for link, to := range map[string]string{"envlink": ".env", "keys": "secrets", "lib": "pnpm/store/lib", "deeper": "secrets/deep",
		"absolute": g.root + "/secrets/deep", "plain/up": "../secrets/deep", "deep.link": "plain/up"} {
		require.NoError(t, os.Symlink(to, filepath.Join(g.root, link)))
	}
	run := func(args ...string) {
		cmd := exec.Command("git", append([]string{"-C", g.root, "-c", "user.name=u", "-c", "user.email=u@x"}, args...)...)
		output, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", output)
	}
	run("init", "-q", "-b", "main")
	run("add", ".")
	run("commit", "-qm", "One")
	run("tag", "blob", "HEAD:.env")
	run("branch", "old")
	require.NoError(t, os.WriteFile(filepath.Join(g.root, ".env"), []byte(hidden+" more \n"), 0o644))
	run("mv", "sub/.env", "sub/d.txt")
	run("commit", "-qam", "Two")
	require.NoError(t, os.WriteFile(filepath.Join(g.root, ".env"), []byte(hidden+" again\n"), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(g.root, "secrets/untracked"), []byte(hidden+"\n"), 0o644))
	run("stash")
	require.NoError(t, os.WriteFile(filepath.Join(g.root, "a.txt"), []byte("a\nmore\n"), 0o644))
	w := roottest.Open(t, g.root)
	g.place = At(w)
	g.place.Server = func(name string) string { return name }
	return g
}

// run runs a line with a shell and reports whether it prints what is hidden.
func (g ground) prints(t testing.TB, line, dir string) bool {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", line)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_PAGER=cat")
	output, _ := cmd.CombinedOutput()
	return strings.Contains(string(output), hidden)
}

var vaultRules = []string{"allow run cat ...", "allow run head ...", "allow run tail ...", "allow run sed ...", "allow run sort ...",
	"allow run diff ...", "allow run grep ...", "allow run rg ...", "allow run rg --files ...", "allow run wc ...", "allow run ls ...",
	"allow run find ...", "allow run git status ...", "allow run git diff ...", "allow run git log ...", "allow run git show ...",
	"allow run git blame ...", "allow run git grep ...", "allow run git ls-files ...", "allow run git rev-parse ...",
	"allow run git reflog ...", "allow run git stash list ...", "allow run git tag ...", "allow run git branch ...", "allow run ruff check ...",
	"allow run go test ...", "allow run git cat-file -p HEAD:.env", "allow run git archive HEAD .env", "allow run git checkout old -- .env",
	"allow run git restore --source=old .env", "allow run cp a.txt b.txt", "allow run tar -cO .env",
	"deny read **/.env", "deny read secrets/**"}

// Every command that prints a denied file is asked about or denied, whatever else is allowed. One
// that begins with "-" does not print it with the programs of this machine. "@" names the folder in
// which it runs.
//
// Clause R2.
func TestSpellingsOfDeniedFiles(t *testing.T) {
	g := newVault(t)
	rules := g.rules(t, vaultRules...)
	for class, lines := range tabletest.Read(t, "spellings.txt") {
		if class == "in an agent's terminal" || class == "harmless" {
			continue
		}
		t.Run(class, func(t *testing.T) {
			for _, line := range lines {
				line, silent := strings.CutPrefix(line, "-")
				dir := g.root
				if at, rest, found := strings.Cut(line, ":"); found && strings.HasPrefix(at, "@") {
					dir, line = filepath.Join(g.root, at[1:]), rest
				}
				line = g.expand(line)
				action := g.ask(t, "", commandIn(line, dir))
				assert.NotEqual(t, Allow, Decide(action, rules).Effect, "%q in %s", line, dir)
				if _, err := exec.LookPath(strings.Fields(line)[0]); err == nil && !silent {
					assert.True(t, g.prints(t, line, dir), "%q in %s prints nothing here", line, dir)
				}
			}
		})
	}
}

func commandIn(line, dir string) string {
	raw, _ := json.Marshal(map[string]any{"toolCallId": "t", "kind": "execute", "rawInput": map[string]string{"command": line, "cwd": dir}})
	return string(raw)
}

// What surely prints no denied file is not asked about.
//
// Clause R2.
func TestHarmlessSpellings(t *testing.T) {
	g := newVault(t)
	rules := g.rules(t, append(vaultRules, "deny run git push")...)
	for _, line := range tabletest.Read(t, "spellings.txt")["harmless"] {
		got := Decide(g.ask(t, "", commandIn(line, g.root)), rules)
		require.Equal(t, Allow, got.Effect, "%q: %v", line, got)
		if !strings.HasPrefix(line, "go ") {
			require.False(t, g.prints(t, line, g.root), line)
		}
	}
	far := g.rules(t, "allow run rg ...", "allow run grep ...", "allow run git diff ...", "allow run git grep ...", "allow run git show ...",
		"deny read other/**")
	for _, line := range []string{"rg more plain", "grep -rn more plain sub", "git diff", "git grep more"} {
		require.Equal(t, Allow, Decide(g.ask(t, "", commandIn(line, g.root)), far).Effect, line)
	}
	for _, line := range []string{"rg more", "git show HEAD", "git diff HEAD"} {
		got := Decide(g.ask(t, "", commandIn(line, g.root)), far)
		require.Equal(t, "ask (the rule `read other/**` may apply to it)", got.String(), line)
	}
}

// Arguments of tools are matched, too.
//
// Clause R2.
func TestArgumentsOfTools(t *testing.T) {
	g := newVault(t)
	require.NoError(t, os.Symlink(g.out, filepath.Join(g.root, "..", "outlink")))
	rules := g.rules(t, "allow tool fs.*", "deny read **/.env", "deny read secrets/**", "deny run git push", "ask edit docs/**",
		"deny read outside {out}/secret.txt", "deny fetch evil.com")
	table := tabletest.Read(t, "arguments.txt")
	table["deny"] = append(table["deny"], `{"path":"`+filepath.Dir(g.out)+`/outlink/secret.txt"}`)
	for want, all := range table {
		for _, arguments := range all {
			arguments = g.expand(arguments)
			action := g.place.ToolCall(ServerTool{Server: "fs", Name: "x", Config: "fs"}, json.RawMessage(arguments))
			require.Equal(t, Effect(want), Decide(action, rules).Effect, arguments)
			asked := g.ask(t, "qwen", `{"kind":"other","rawInput":`+arguments+`,"_meta":{"toolName":"mcp__fs__x"}}`)
			require.Equal(t, Effect(want), Decide(asked, rules).Effect, arguments)
			require.Equal(t, Allow, Decide(action, g.rules(t, "allow tool fs.*")).Effect, "without rules about files")
		}
	}
	for rule, want := range map[string]Effect{"deny run": Deny, "ask run": Ask, "deny edit": Allow, "deny read": Allow} {
		action := g.place.ToolCall(ServerTool{Server: "fs", Name: "x"}, json.RawMessage(`{"command":"ls"}`))
		require.Equal(t, want, Decide(action, g.rules(t, "allow tool fs.*", rule)).Effect, rule)
		action = g.place.ToolCall(ServerTool{Server: "fs", Name: "x"}, json.RawMessage(`{"text":"ls"}`))
		require.Equal(t, Allow, Decide(action, g.rules(t, "allow tool fs.*", rule)).Effect, rule)
	}
	action := g.place.ToolCall(ServerTool{Server: "fs", Name: "x"}, json.RawMessage(`{"command":"ls"}`))
	action.Mode = Rules{Deny: []Rule{AllEdits, AllRuns}}
	require.Equal(t, Allow, Decide(action, g.rules(t, "allow tool fs.*")).Effect, "a mode is not about tools")
	action = g.place.ToolCall(ServerTool{Server: "fs", Name: "x"}, json.RawMessage(`[".env"]`))
	require.Equal(t, Ask, Decide(action, rules).Effect)
}
