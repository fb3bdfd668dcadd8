package permission

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

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
