package permission

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// unasked are command lines about a denied file that nobody asks about, as in an agent's terminals.
// "@" names the folder in which a line runs.
var unasked = []string{
	"cat {root}/secrets/key.pem", "cat /proc/self/root{root}/secrets/key.pem", "cat /proc/self/cwd/secrets/key.pem",
	"@sub:cat /proc/self/cwd/../secrets/key.pem", "cat /proc/thread-self/cwd/secrets/key.pem", "cat {out}/../alias/secrets/key.pem",
	"cat {out}/../alias/keys/key.pem", "cat {out}/../aliaskey", "cat ../out/../alias/secrets/key.pem", "cd sub && cat ../secrets/key.pem",
	"cd plain; cd ../sub; cat ../secrets/key.pem", "sh -c 'cd sub; cat ../secrets/key.pem'", "cd pnpm && cat store/private.txt",
	"cd pnpm/store && cat private.txt", "cd pnpm; cd store; cat private.txt", "env -C pnpm/store cat private.txt", "tar -C pnpm/store -c private.txt",
	"cat secret?/key.pem", "cat s*/key.pem", "cat secrets/k*", "cat ./secrets/[!a]ey.pem", "cat {root}/s*s/*.pem", "head s[a-e]crets/*.pem",
	"sh -c 'cat s*/k*.pem'", "cd pnpm && cat st*/p*", "cat pn*/st*/priv*.txt", "@pnpm:cat store/private.txt", "git -C pnpm/store show HEAD:./private.txt",
}

// A deny rule holds for what a command names, from where the command goes, by whatever way that
// leads there.
//
// Clause R5.
func TestRulesOfCommandsThatNobodyAsksAbout(t *testing.T) {
	g := newVault(t)
	require.NoError(t, os.WriteFile(filepath.Join(g.root, "pnpm/store/private.txt"), []byte(hidden), 0o644))
	require.NoError(t, os.Symlink(g.root, filepath.Join(g.root, "..", "alias")))
	require.NoError(t, os.Symlink(filepath.Join(g.root, "secrets/key.pem"), filepath.Join(g.root, "..", "aliaskey")))
	rules := g.rules(t, "deny read secrets/**", "deny read pnpm/store/private.txt")
	for _, line := range unasked {
		dir := g.root
		if at, rest, found := strings.Cut(line, ":"); found && strings.HasPrefix(at, "@") {
			dir, line = filepath.Join(g.root, at[1:]), rest
		}
		line = g.expand(line)
		if !strings.HasPrefix(line, "git") {
			require.True(t, g.prints(t, line, dir), line)
		}
		a, _ := Command(g.place.Workspace, line, dir)
		require.Error(t, rules.Check(a), "%q in %s", line, dir)
	}
	for _, line := range []string{"cat a.txt", "cd sub && cat b.txt", "cd sub && cat ../a.txt", "cat {out}/secret.txt", "cat a.*", "ls *", "rg --files -g '*.txt'",
		"cat sub/*.txt", "find . -name 'key.*'"} {
		a, _ := Command(g.place.Workspace, g.expand(line), g.root)
		require.NoError(t, rules.Check(a), line)
	}
	a, _ := Command(g.place.Workspace, "cat secrets/ke{y,z}.pem", g.root) // as bash does
	require.Error(t, rules.Check(a))
	for _, name := range []string{"{out}/../alias/secrets/key.pem", "/proc/self/root{root}/secrets/key.pem", "{out}/../aliaskey"} {
		require.Error(t, rules.Check(g.place.Access(Read, g.expand(name))), name)
		real, err := filepath.EvalSymlinks(g.expand(name))
		require.NoError(t, err)
		require.Error(t, rules.Check(g.place.OutsideRead(g.expand(name), real)), name)
	}
}

// Patterns that people write mean what they seem to.
//
// Clause R5.
func TestPatternsOfFolders(t *testing.T) {
	g := newVault(t)
	for rule, names := range map[string][]string{
		"read .": {"a.txt", "secrets/key.pem"}, "read ./.": {"a.txt"}, "read ./secrets": {"secrets/deep/x"},
		"read {secrets,plain}": {"secrets/deep/x", "plain/c.txt"}, "read **/{.env,deep}": {"sub/.env", "secrets/deep/x"},
		"read caf\u00e9/**": {"cafe\u0301/x", "CAFE\u0301/x", "caf\u00e9/x"}, "read cafe\u0301": {"caf\u00e9/x"},
	} {
		rules := g.rules(t, "deny "+rule)
		for _, name := range names {
			require.Error(t, rules.Check(g.place.Access(Read, filepath.Join(g.root, name))), "%s: %s", rule, name)
		}
	}
	for rule, name := range map[string]string{"read {secrets,plain}": "sub/b.txt", "read **/{.env,deep}": "sub/b.txt", "read {a,*.pem}": "sub/b.txt"} {
		require.NoError(t, g.rules(t, "deny "+rule).Check(g.place.Access(Read, filepath.Join(g.root, name))), rule)
	}
}
