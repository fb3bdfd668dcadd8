//go:build unix

package discovery_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/discovery"
	"github.com/acp-agent/acp-agent/internal/test/proctest"
)

// Clause C6.
func TestSpecialFiles(t *testing.T) {
	top := tree(t, map[string]string{"CLAUDE.md": "@pipe Found all the same.",
		"GEMINI.md/x": "a directory"})
	require.NoError(t, syscall.Mkfifo(filepath.Join(top, "AGENTS.md"), 0o600))
	require.NoError(t, syscall.Mkfifo(filepath.Join(top, ".mcp.json"), 0o600))
	require.NoError(t, syscall.Mkfifo(filepath.Join(top, "pipe"), 0o600))
	c := scan(t, discovery.Options{}, top)
	require.Equal(t,
		"invalid instruction AGENTS.md in AGENTS.md\n\twhy: it is a fifo, not a file\n"+
			"active instruction CLAUDE.md in CLAUDE.md\n\tdescription: @pipe Found all the same.\n"+
			"\trule: @pipe is not imported: it is a fifo, not a file\n"+
			"invalid instruction GEMINI.md in GEMINI.md\n\twhy: it is a directory, not a file\n"+
			"invalid mcp_server .mcp.json in .mcp.json\n\twhy: it is a fifo, not a file\n", summary(c,
			top))
}

// Clause A25.
func TestUnreadableFiles(t *testing.T) {
	if proctest.AsOrdinaryUser(t, t.Name()) {
		return
	}
	top := tree(t, map[string]string{
		"AGENTS.md":                       "x",
		".agents/skills/closed/SKILL.md":  skill("closed", "Closed."),
		".agents/skills/good/SKILL.md":    skill("good", "Good."),
		".claude/commands/x.md":           "x",
		".agents/skills/secret/SKILL.md":  skill("secret", "Secret."),
		".agents/skills/secret/more/x.md": "x",
	})
	for _, path := range []string{"AGENTS.md", ".agents/skills/closed", ".claude",
		".agents/skills/secret/SKILL.md"} {
		path = filepath.Join(top, path)
		require.NoError(t, os.Chmod(path, 0))
		t.Cleanup(func() { _ = os.Chmod(path, 0o700) })
	}
	c := scan(t, discovery.Options{}, top)
	require.Equal(t, []string{"good"}, names(c.Active(discovery.Skill)))
	for _, a := range c.Artifacts() {
		if a.State == discovery.Invalid {
			require.Contains(t, a.Reason, "permission denied")
		}
	}
	require.Equal(t, "AGENTS.md", c.Of(discovery.Instruction)[0].Name)
	require.Equal(t, []string{".agents/skills/closed", "good", ".agents/skills/secret/SKILL.md"},
		names(c.Of(discovery.Skill))[:3])
	require.NotEmpty(t, c.Of(discovery.Command),
		"what is in .claude is not known, and that is said")
}
