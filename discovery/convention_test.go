package discovery_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/discovery"
)

func TestPatterns(t *testing.T) {
	for _, pattern := range []string{"", "/x", "a//b", "../x", "**/x.md", "a/**", "a/[", `a\b`, "c:x"} {
		require.Error(t, discovery.CheckPattern(pattern), pattern)
	}
	for _, r := range discovery.Table() {
		require.NotEmpty(t, r.Kind, r.Pattern)
		require.NotEmpty(t, r.Source, r.Pattern)
		require.Equal(t, r.Kind == discovery.MCPServer, r.Member != "", r.Pattern)
	}
}

// Clause A25.
func TestOtherDirectoriesAreNotScanned(t *testing.T) {
	files := map[string]string{".agents/skills/one/SKILL.md": skill("one", "One.")}
	for i := range 100 {
		files[fmt.Sprintf("src/pkg%d/deep/file.go", i)] = "package x"
		files[fmt.Sprintf("node_modules/pkg%d/SKILL.md", i)] = skill("no", "No.")
	}
	c := scan(t, discovery.Options{"MaxDirs": 2}, tree(t, files))
	require.Empty(t, c.LimitsReached(), "the skill's directory and src are all that it looks into")
	require.Equal(t, []string{"one"}, names(c.Of(discovery.Skill)))
}
