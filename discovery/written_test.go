package discovery_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/discovery"
)

// The same globs in every way that people write them.
//
// Clause A25.
func TestGlobsAsTheyAreWritten(t *testing.T) {
	globs := []string{"src/**/*.js", "src/**/*.{ts,tsx}"}
	ways := map[string]string{
		"plain":               `KEY: src/**/*.js, src/**/*.{ts,tsx}`,
		"quoted":              `KEY: "src/**/*.js, src/**/*.{ts,tsx}"`,
		"quoted each":         `KEY: "src/**/*.js", "src/**/*.{ts,tsx}"`,
		"single quotes":       `KEY: 'src/**/*.js', 'src/**/*.{ts,tsx}'`,
		"both quotes":         `KEY: 'src/**/*.js', "src/**/*.{ts,tsx}"`,
		"comment":             `KEY: src/**/*.js, src/**/*.{ts,tsx} # both`,
		"quoted and comment":  `KEY: "src/**/*.js", "src/**/*.{ts,tsx}" # "both", too`,
		"flow list":           `KEY: ["src/**/*.js", "src/**/*.{ts,tsx}"] # both`,
		"plain flow list":     `KEY: [src/**/*.js, "src/**/*.{ts,tsx}"]`,
		"long flow list":      "KEY: [\n  \"src/**/*.js\",\n  'src/**/*.{ts,tsx}',\n]",
		"list":                "KEY:\n  - src/**/*.js # one\n  - \"src/**/*.{ts,tsx}\" # two",
		"list without indent": "KEY:\n- 'src/**/*.js'\n- 'src/**/*.{ts,tsx}'",
		"commas in a list":    "KEY:\n  - src/**/*.js,src/**/*.{ts,tsx}",
		"commas in brackets":  `KEY: ["src/**/*.js, src/**/*.{ts,tsx}"]`,
		"folded":              "KEY: >-\n  src/**/*.js,\n  src/**/*.{ts,tsx}",
		"no space":            `KEY: src/**/*.js,src/**/*.{ts,tsx}`,
		"another fault":       "description: a: b\nKEY: \"src/**/*.js\", \"src/**/*.{ts,tsx}\"",
	}
	for name, f := range map[string]struct{ path, keys, glob string }{
		"Claude":   {".claude/rules/a.md", "", "paths"},
		"Copilot":  {".github/instructions/a.instructions.md", "", "applyTo"},
		"Cursor":   {".cursor/rules/a.mdc", "alwaysApply: false # c\n", "globs"},
		"Windsurf": {".windsurf/rules/a.md", "trigger: glob # c\n", "globs"},
		"Continue": {".continue/rules/a.md", "", "globs"},
		"Kiro":     {".kiro/steering/a.md", "inclusion: fileMatch\n", "fileMatchPattern"},
	} {
		for way, text := range ways {
			t.Run(name+"/"+way, func(t *testing.T) {
				keys := f.keys + replaceKey(text, f.glob)
				top := tree(t, map[string]string{f.path: "---\n" + keys + "\n---\nBe brief.\n"})
				c := scan(t, discovery.Options{}, top)
				rule := c.Of(discovery.Instruction)[0]
				require.Equal(t, discovery.ByPath, rule.Applies.Mode, keys)
				require.Equal(t, globs, rule.Applies.Globs, keys)
				list, err := c.For(t.Context(), filepath.Join(top, "src/x/y.tsx"))
				require.NoError(t, err)
				require.Len(t, list, 1)
			})
		}
	}
}

func replaceKey(text, key string) string {
	for i := 0; i+3 <= len(text); i++ {
		if text[i:i+3] == "KEY" {
			return text[:i] + key + text[i+3:]
		}
	}
	return text
}

// Clause A25.
func TestRulesThatAlwaysApply(t *testing.T) {
	for keys, want := range map[string]discovery.Mode{
		"alwaysApply: true":                       discovery.Always,
		"alwaysApply: true # c":                   discovery.Always,
		"alwaysApply: True":                       discovery.Always,
		"alwaysApply: \"true\" # c":               discovery.Always,
		"globs: null\nalwaysApply: true # a # b":  discovery.Always,
		"alwaysApply: false # true":               discovery.OnRequest,
		"globs: ~ # none\nalwaysApply: false":     discovery.OnRequest,
		"description: C# # c\nalwaysApply: false": discovery.ByDescription,
	} {
		t.Run(keys, func(t *testing.T) {
			top := tree(t, map[string]string{".cursor/rules/a.mdc": "---\n" + keys + "\n---\nBe brief.\n"})
			rule := scan(t, discovery.Options{}, top).Of(discovery.Instruction)[0]
			require.Equal(t, want, rule.Applies.Mode)
			if want == discovery.ByDescription {
				require.Equal(t, "C#", rule.Description)
			}
		})
	}
}

// Two asterisks before other characters mean any depth, as in the tools' own globs.
//
// Clause A25.
func TestGlobsOfAnyDepth(t *testing.T) {
	for glob, paths := range map[string]map[string]bool{
		"**.ts":            {"a.ts": true, "x/y/a.ts": true, "x/a.tsx": false},
		"src/**.ts":        {"src/a.ts": true, "src/x/y/a.ts": true, "a.ts": false},
		"**.{ts,tsx}":      {"a.ts": true, "x/a.tsx": true, "x/a.js": false},
		"**/*.ts":          {"a.ts": true, "x/a.ts": true},
		"**test.ts":        {"a.test.ts": true, "x/a.test.ts": true, "x/a.ts": false},
		"{lib/**.ts,*.md}": {"lib/x/a.ts": true, "a.md": true, "a.ts": false},
	} {
		t.Run(glob, func(t *testing.T) {
			top := tree(t, map[string]string{
				".github/instructions/a.instructions.md": "---\napplyTo: '" + glob + "'\n---\nBe brief.\n"})
			c := scan(t, discovery.Options{}, top)
			for path, want := range paths {
				list, err := c.For(t.Context(), filepath.Join(top, path))
				require.NoError(t, err)
				require.Equal(t, want, len(list) == 1, path)
			}
		})
	}
}

// Clause A25.
func TestImportsAreNotInComments(t *testing.T) {
	top := tree(t, map[string]string{
		"CLAUDE.md": "<!-- @a.md -->\n<!--\n@b.md\n```\n-->\n@c.md <!-- @d.md --> @e.md\n" +
			"`<!--` @f.md `-->`\n```\n<!--\n```\n@g.md\n<!-- @h.md\n",
		"a.md": "a", "b.md": "b", "c.md": "c", "d.md": "d", "e.md": "e", "f.md": "f", "g.md": "g",
		"h.md": "h",
	})
	require.Equal(t, []string{"c.md", "e.md", "f.md", "g.md"}, imported(t, top))
}

// Clause A25.
func TestImportsOfASection(t *testing.T) {
	top := tree(t, map[string]string{
		"CLAUDE.md": "See @a.md#setup, @b#1.md and @missing.md#x.",
		"a.md":      "a", "b#1.md": "b", "b": "not this",
	})
	require.Equal(t, []string{"a.md", "b#1.md"}, imported(t, top))
}

// imported returns the files that CLAUDE.md imports.
func imported(t *testing.T, top string) (all []string) {
	t.Helper()
	for _, in := range scan(t, discovery.Options{}, top).Of(discovery.Instruction)[0].Imports {
		all = append(all, relative(in.Ref.Real(), top))
	}
	return all
}
