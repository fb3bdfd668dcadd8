package permission

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/tabletest"
)

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
	for _, line := range tabletest.Read(t, "spellings.txt")["in an agent's terminal"] {
		dir := g.root
		if at, rest, found := strings.Cut(line, ":"); found && strings.HasPrefix(at, "@") {
			dir, line = filepath.Join(g.root, at[1:]), rest
		}
		line = g.expand(line)
		if !strings.HasPrefix(line, "git") {
			require.True(t, g.prints(t, line, dir), line)
		}
		a, _ := g.place.Command(line, dir)
		require.Error(t, rules.Check(a), "%q in %s", line, dir)
	}
	for _, line := range []string{"cat a.txt", "cd sub && cat b.txt", "cd sub && cat ../a.txt", "cat {out}/secret.txt", "cat a.*", "ls *", "rg --files -g '*.txt'",
		"cat sub/*.txt", "find . -name 'key.*'"} {
		a, _ := g.place.Command(g.expand(line), g.root)
		require.NoError(t, rules.Check(a), line)
	}
	a, _ := g.place.Command("cat secrets/ke{y,z}.pem", g.root) // as bash does
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
		"read outside {out}/Secret.TXT": {"../out/secret.txt"}, "read outside {out}/a./b": {"../out/A/b/c"},
	} {
		rules := g.rules(t, "deny "+rule)
		for _, name := range names {
			require.Error(t, rules.Check(g.place.Access(Read, filepath.Join(g.root, name))), "%s: %s", rule, name)
		}
	}
	for rule, name := range map[string]string{"read {secrets,plain}": "sub/b.txt", "read **/{.env,deep}": "sub/b.txt", "read {a,*.pem}": "sub/b.txt",
		"read outside {out}/a:b/c": "../out/a/x"} {
		require.NoError(t, g.rules(t, "deny "+rule).Check(g.place.Access(Read, filepath.Join(g.root, name))), rule)
	}
}
