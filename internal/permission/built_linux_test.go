package permission

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/tabletest"
)

// What a shell makes, or a program finds, cannot be told before it runs: then the user is asked
// about lines that print a denied file without naming it. One that begins with "-" prints it only
// in another shell, or with a program that is not everywhere. "@" names the folder in which a line
// runs.
//
// Clause R5.
func TestRulesOfCommandsThatBuildNames(t *testing.T) {
	built := tabletest.Read(t, "built.txt")
	harmless := built["harmless"]
	delete(built, "harmless")
	built["long"] = []string{strings.Repeat(": aaaaaaaaaaaaaaaaaaaaaa;", 4000) + "cat .e*",
		": " + strings.Repeat("a ", 40_000) + "; cat .env", strings.Repeat("true;", 200) + "grep -r HIDDEN ."}
	for _, effect := range []string{"deny ", "ask "} {
		g := newVault(t)
		rules, none := g.rules(t, effect+"read **/.env", effect+"read secrets/**"), g.rules(t, "allow read")
		for kind, lines := range built {
			for _, line := range lines {
				line, silent := strings.CutPrefix(g.expand(line), "-")
				dir := g.root
				if at, rest, found := strings.Cut(line, ":"); found && strings.HasPrefix(at, "@") {
					dir, line = filepath.Join(g.root, at[1:]), rest
				}
				a, _ := g.place.Command(line, dir)
				require.Error(t, rules.Check(a), "%s: %.200s", kind, line)
				require.NoError(t, none.Check(a), line)
				if !silent && effect == "deny " && !strings.Contains(line, "rg ") {
					require.True(t, g.prints(t, line, dir), "%.200s prints nothing here", line)
				}
			}
		}
		for _, line := range harmless {
			a, _ := g.place.Command(line, g.root)
			require.NoError(t, rules.Check(a), line)
		}
	}
}

// The folder in which a command runs need not be one of the session's.
//
// Clause R5.
func TestRulesOfCommandsElsewhere(t *testing.T) {
	g := newVault(t)
	require.NoError(t, os.Mkdir(filepath.Join(g.out, "Deep"), 0o700))
	rules := g.rules(t, "deny read secrets/**", "deny read outside {out}/secret.txt", "deny read outside {out}/deep/x")
	for _, line := range []string{"cat {root}/s?????s/*", "f={root}/secrets; cat $f/key.pem", "grep -r HIDDEN {root}", "grep -r HIDDEN {out}/.. | cat", "grep -r 1 .", "cp -r Deep y"} {
		a, _ := g.place.Command(g.expand(line), g.out)
		require.Error(t, rules.Check(a), line)
	}
	for _, line := range []string{"ls -la", "cat {root}/a.txt | head", "grep -r x {root}/plain"} {
		a, _ := g.place.Command(g.expand(line), g.out)
		require.NoError(t, rules.Check(a), line)
	}
}

// What is built may also be a command, a host or a file that is changed.
//
// Clause R5.
func TestOtherRulesOfCommandsThatBuildNames(t *testing.T) {
	g := newVault(t)
	require.NoError(t, os.WriteFile(filepath.Join(g.root, "plain/a.sql"), nil, 0o644))
	for rule, lines := range map[string][]string{
		"run git push":   {"p=pus; git ${p}h", "$(echo git) push", "G=gi; ${G}t push", "echo hsup tig | rev | sh"},
		"fetch evil.com": {"h=evil; curl $h.com", "curl $(echo evil).com", "echo moc.live | rev | xargs curl"},
		"edit **/*.sql":  {"rm plain/*.s??", "rm */*", "f=a.sq; rm plain/${f}l", "cd plain; rm *", "find . -type f -exec rm {} +"},
	} {
		for _, effect := range []string{"deny ", "ask "} {
			rules := g.rules(t, effect+rule)
			for _, line := range lines {
				a, _ := g.place.Command(line, g.root)
				require.Error(t, rules.Check(a), "%s: %s", rule, line)
			}
		}
	}
	for _, rule := range []string{"read", "edit", "tool x.*"} { // these are not about commands
		a, _ := g.place.Command("cat $x", g.root)
		require.NoError(t, g.rules(t, "deny "+rule).Check(a), rule)
	}
}
