package discovery_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/discovery"
)

// The keys of every tool count in the rules of every other, because people copy rules.
func TestKeysOfRules(t *testing.T) {
	for keys, want := range map[string]discovery.Mode{
		"":                               discovery.Always,
		"alwaysApply: true":              discovery.Always,
		"trigger: always_on":             discovery.Always,
		"inclusion: always":              discovery.Always,
		"type: always_apply":             discovery.Always,
		"paths: ['src/*.go']":            discovery.ByPath,
		"globs: src/*.go":                discovery.ByPath,
		"applyTo: src/*.go":              discovery.ByPath,
		"trigger: glob\nglobs: src/*.go": discovery.ByPath,
		"inclusion: fileMatch\nfileMatchPattern: src/*.go": discovery.ByPath,
		"trigger: model_decision\nglobs: src/*.go":         discovery.ByDescription,
		"inclusion: auto":                    discovery.ByDescription,
		"type: agent_requested":              discovery.ByDescription,
		"alwaysApply: false":                 discovery.ByDescription,
		"trigger: manual":                    discovery.OnRequest,
		"inclusion: manual\nglobs: src/*.go": discovery.OnRequest,
	} {
		files := make(map[string]string)
		for _, dir := range []string{".claude/rules", ".windsurf/rules", ".kiro/steering",
			".continue/rules", ".augment/rules", ".trae/rules", ".new/rules/deep"} {
			files[dir+"/r.md"] = "---\ndescription: For tests\n" + keys + "\n---\nTalk.\n"
		}
		found := scan(t, discovery.Options{}, tree(t, files)).Active(discovery.Instruction)
		require.Len(t, found, len(files))
		for _, a := range found {
			require.Equal(t, want, a.Applies.Mode, "%s %q", a.Path, keys)
		}
	}
}
