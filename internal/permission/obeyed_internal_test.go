package permission

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What agents run or obey is asked about, although discovery does not look for it.
func TestSubagentsHooksAndProgramsOfAgents(t *testing.T) {
	for _, path := range []string{
		".claude/agents/one.md", ".agents/agents/one.md", ".github/agents/one.md",
		".gemini/agents/one.md", ".opencode/agent/one.md", ".opencode/agents/one.md",
		".cursor/agents/one.md", ".codex/agents/one.toml", ".amazonq/cli-agents/one.json",
		".augment/agents/one.md", ".cline/agents/one.md", ".codebuddy/agents/one.md",
		".codewhale/agents/one.toml", ".continue/agents/one.md", ".continue/agents/one.yaml",
		".factory/droids/one.md", ".forge/agents/one.md", ".grok/agents/one.md",
		".iflow/agents/one.md", ".junie/agents/one.md", ".kilo/agent/one.md", ".kilo/agents/one.md",
		".kimi-code/agents/one.md", ".kiro/agents/one.md", ".kiro/agents/one.json",
		".kode/agents/one.md", ".omp/agents/one.md", ".qoder/agents/one.md", ".qwen/agents/one.md",
		".vibe/agents/one.toml", ".xum/agents/one.md", "agents/one.md", ".claude/settings.json",
		".claude/settings.local.json", ".gemini/settings.json", ".cursor/hooks.json",
		".codex/hooks.json", ".github/hooks/one.json", ".augment/settings.json",
		".codebuddy/settings.json", "crush.json", ".crush.json", ".factory/settings.json",
		".grok/hooks/one.json", ".iflow/settings.json", ".qwen/settings.json",
		".windsurf/hooks.json", ".codewhale/hooks.toml", ".factory/hooks.json",
		".kiro/hooks/one.kiro.hook", ".kiro/hooks/one.json", ".omp/hooks/one.ts",
		".openhands/hooks.json", ".vibe/hooks.toml", "hooks/hooks.json", ".opencode/plugin/one.js",
		".opencode/plugins/one.js", ".cline/plugins/one.js", ".pi/extensions/one.ts",
	} {
		require.True(t, risks()[2].matches(strings.Split(path, "/")), path)
		require.True(t, risks()[2].matches(strings.Split("deep/in/"+path, "/")), path)
	}
}
