package permission

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/text/unicode/norm"
)

// runByThemselves are paths that are asked for because of a name in them.
var runByThemselves = []string{
	".git/config", "a/.envrc", "x.git/hooks/y", "AGENTS.md", "a/CLAUDE.md", "skills/x/SKILL.md",
	"commands/a/b.md", "opencode.json", "build.rs", "my.code-workspace", "x.config.mjs",
	"node_modules/x/y.js", "lib/site-packages/x.py", "hooks/hooks.json", "mise.toml", "qwen.md",
	"agents/one.md", "crush.json", ".claude/agents/one.md", ".codex/hooks.json", "x.prompt.md",
}

// Clause B2.
func TestFilesThatAreAskedFor(t *testing.T) {
	for path, want := range map[string]bool{
		"/etc/cron.d/x": true, "/usr/local/bin/x": true, "/lib/x": true, "/usr/src/app/main.go": false,
		"/home/me/etc/x": false, "/srv/app/lib/x": false,
	} {
		require.Equal(t, want, isOfSystem(namesOf(path)), path)
	}
	for _, path := range runByThemselves {
		require.True(t, isAskedFor(path) && isAskedFor("deep/in/"+path), path)
	}
	require.False(t, isAskedFor("src/main.go"))
}

// isAskedFor reports whether a path is asked for because of a name in it.
func isAskedFor(path string) bool {
	names := namesOf(path)
	return len(names) > 0 && (whyByName(true, names) != "")
}

// FuzzSpellings spells each name that is asked for in ways that some file system takes for the same
// name, one choice for each byte of how.
//
// Clause B2.
func FuzzSpellings(f *testing.F) {
	f.Add(0, []byte{0})
	f.Add(3, []byte{1, 2, 3, 4, 5, 0, 1})
	f.Add(5, []byte{4, 4, 4, 4, 4, 4, 4, 4, 4, 3, 3, 2, 2, 1, 1})
	f.Fuzz(func(t *testing.T, which int, how []byte) {
		path := runByThemselves[uint(which)%uint(len(runByThemselves))]
		var b strings.Builder
		for i, r := range path {
			way := byte(0)
			if i < len(how) {
				way = how[i]
			}
			switch {
			case way%6 == 1:
				b.WriteString(strings.ToUpper(string(r)))
			case way%6 == 2:
				b.WriteString("\u200b" + string(r))
			case way%6 == 3 && r == 's':
				b.WriteRune('ſ')
			case way%6 == 3 && r == 'k':
				b.WriteRune('\u212a')
			case way%6 == 4 && r > ' ' && r != '/':
				b.WriteRune(r + 0xfee0) // the full width form
			case way%6 == 5:
				b.WriteString(string(r) + "\ufe0f")
			default:
				b.WriteRune(r)
			}
		}
		spelled := b.String()
		require.True(t, isAskedFor(spelled), "%+q is %s", spelled, path)
		require.True(t, isAskedFor(norm.NFC.String(spelled)))
		require.True(t, isAskedFor(norm.NFD.String(spelled)))
		require.True(t, isAskedFor(spelled+". ."), "Windows ignores dots and spaces at the end")
		require.True(t, isAskedFor(spelled+"::$DATA"), "it is the file's main stream")
	})
}

// FuzzFold folds any name: what is folded again stays the same.
func FuzzFold(f *testing.F) {
	f.Add("AGENTS.md")
	f.Add("Stra\u00dfe\u0130\ufb05.")
	f.Fuzz(func(t *testing.T, name string) {
		once := fold(name)
		require.Equal(t, once, fold(once), "%+q", name)
		require.LessOrEqual(t, len(once), 100*len(name))
	})
}
