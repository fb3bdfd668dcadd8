package discovery_test

import (
	"path/filepath"
	"strings"
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
				keys := f.keys + strings.Replace(text, "KEY", f.glob, 1)
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
