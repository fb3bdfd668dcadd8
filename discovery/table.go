package discovery

// Conventions returns a new copy of the table of what agents read in a folder. Earlier rows take
// precedence. testdata/sources.txt says for each row where its agent documents it or does it, and
// whether anybody looked: a new row needs a line there.
func Conventions() []Convention {
	const one, all = true, false // whether a directory has only one of the files
	const (
		skillsSpec   = "agentskills.io"
		amazonQ      = "Amazon Q Developer"
		amp          = "Amp"
		antigravity  = "Antigravity"
		augment      = "Augment"
		claudeCode   = "Claude Code"
		cline        = "Cline"
		codeBuddy    = "CodeBuddy"
		codex        = "Codex"
		continueDev  = "Continue"
		crush        = "Crush"
		cursor       = "Cursor"
		devin        = "Devin"
		droid        = "Factory Droid"
		firebase     = "Firebase Studio"
		gemini       = "Gemini CLI"
		copilot      = "GitHub Copilot"
		goose        = "goose"
		grok         = "Grok Build"
		iFlow        = "iFlow CLI"
		junie        = "Junie"
		kiloCode     = "Kilo Code"
		kimiCode     = "Kimi Code"
		kiro         = "Kiro"
		kode         = "Kode"
		lingma       = "Lingma"
		vibe         = "Mistral Vibe"
		neovate      = "Neovate"
		openPlugins  = "open plugins"
		openaiSkills = "openai/skills"
		opencode     = "opencode"
		openHands    = "OpenHands"
		pi           = "Pi"
		qoder        = "Qoder"
		qwenCode     = "Qwen Code"
		rooCode      = "Roo Code"
		trae         = "Trae"
		warp         = "Warp"
		windsurf     = "Windsurf"
		xum          = "Xum"
		zed          = "Zed"
	)
	return []Convention{
		// Instructions.
		{"AGENTS.override.md", Text, EveryDirectory, one, codex},
		{"AGENTS.md", Text, EveryDirectory, one, "agents.md"},
		{"AGENT.md", Text, EveryDirectory, one, amp},
		{"CLAUDE.md", TextWithImports, EveryDirectory, one, claudeCode},
		{".claude/CLAUDE.md", TextWithImports, EveryDirectory, one, claudeCode},
		{"GEMINI.md", TextWithImports, EveryDirectory, one, gemini},
		{"QWEN.md", TextWithImports, EveryDirectory, one, qwenCode},
		{"WARP.md", Text, EveryDirectory, one, warp},
		{"IFLOW.md", TextWithImports, EveryDirectory, one, iFlow},
		{"CODEBUDDY.md", TextWithImports, EveryDirectory, one, codeBuddy},
		{".codebuddy/CODEBUDDY.md", TextWithImports, EveryDirectory, one, codeBuddy},
		{"CRUSH.md", Text, RootOnly, one, crush},
		{"crush.md", Text, RootOnly, one, crush},
		{"Crush.md", Text, RootOnly, one, crush},
		{".rules", Text, RootOnly, one, zed},
		{".cursorrules", Text, RootOnly, one, cursor},
		{".windsurfrules", Text, RootOnly, one, windsurf},
		{".clinerules", Text, RootOnly, one, cline},
		{".roorules", Text, RootOnly, one, rooCode},
		{".kilocoderules", Text, RootOnly, one, kiloCode},
		{".continuerules", Text, RootOnly, one, continueDev},
		{".augment-guidelines", Text, RootOnly, one, augment},
		{".goosehints", Text, RootOnly, one, goose},
		{".junie/AGENTS.md", Text, RootOnly, one, junie},
		{".junie/guidelines.md", Text, RootOnly, one, junie},
		{".idx/airules.md", Text, RootOnly, one, firebase},
		{"replit.md", Text, RootOnly, one, "Replit"},
		{".kimi-code/AGENTS.md", Text, RootOnly, all, kimiCode},
		{".xum/AGENTS.md", Text, RootOnly, all, xum},
		{".xum/AGENTS.local.md", Text, RootOnly, all, xum},
		{"AGENTS.local.md", Text, RootOnly, all, rooCode},
		{"CLAUDE.local.md", TextWithImports, EveryDirectory, all, claudeCode},
		{"CODEBUDDY.local.md", TextWithImports, EveryDirectory, all, codeBuddy},
		{"CRUSH.local.md", Text, RootOnly, all, crush},
		{"crush.local.md", Text, RootOnly, all, crush},
		{"Crush.local.md", Text, RootOnly, all, crush},
		{".github/copilot-instructions.md", Text, RootOnly, all, copilot},
		{".github/instructions/**/*.instructions.md", CopilotRule, RootOnly, all, copilot},
		{".claude/rules/**/*.md", AnchoredRule, RootOnly, all, claudeCode},
		{".cursor/rules/**/*.mdc", CursorRule, EveryDirectory, all, cursor},
		{".windsurf/rules/**/*.md", Rule, EveryDirectory, all, windsurf},
		{".devin/rules/**/*.md", Rule, EveryDirectory, all, devin},
		{".clinerules/*.md", AnchoredRule, RootOnly, all, cline},
		{".clinerules/*.txt", AnchoredRule, RootOnly, all, cline},
		{".cline/rules/**/*.txt", AnchoredRule, RootOnly, all, cline},
		{".roo/rules/**/*.md", Text, EveryDirectory, all, rooCode},
		{".roo/rules/**/*.txt", Text, EveryDirectory, all, rooCode},
		{".roo/rules/**/*.xml", Text, EveryDirectory, all, rooCode},
		{".roo/rules-*/**/*.md", RooModeRule, EveryDirectory, all, rooCode},
		{".roo/rules-*/**/*.txt", RooModeRule, EveryDirectory, all, rooCode},
		{".roo/rules-*/**/*.xml", RooModeRule, EveryDirectory, all, rooCode},
		{".roorules-*", RooModeRule, RootOnly, all, rooCode},
		{".clinerules-*", RooModeRule, RootOnly, all, rooCode},
		{".kilocode/rules-*/**/*.md", RooModeRule, RootOnly, all, kiloCode},
		{".kiro/steering/**/*.md", Rule, RootOnly, all, kiro},
		{".augment/rules/**/*.md", Rule, RootOnly, all, augment},
		{".qoder/rules/**/*.md", Rule, RootOnly, all, qoder},
		{".lingma/rules/**/*.md", Rule, RootOnly, all, lingma},
		{".codebuddy/rules/**/*.mdc", AnchoredRule, RootOnly, all, codeBuddy},
		{".grok/rules/*.md", Text, EveryDirectory, all, grok},
		{".agents/rules/**/*.md", Rule, RootOnly, all, antigravity},
		{".agent/rules/**/*.md", Rule, RootOnly, all, antigravity},
		{".*/rules/**/*.md", AnchoredRule, RootOnly, all, continueDev},
		{".openhands/microagents/**/*.md", Microagent, RootOnly, all, openHands},
		{".openhands/skills/*.md", Microagent, RootOnly, all, openHands},
		// Skills.
		{".agents/skills/**/SKILL.md", SkillFile, EveryDirectory, all, skillsSpec},
		{".claude/skills/**/SKILL.md", SkillFile, EveryDirectory, all, claudeCode},
		{".opencode/skill/**/SKILL.md", SkillFile, RootOnly, all, opencode},
		{".*/skills/**/SKILL.md", SkillFile, RootOnly, all, skillsSpec},
		{".posit/assistant/skills/**/SKILL.md", SkillFile, RootOnly, all, "Posit Assistant"},
		{".roo/skills-*/**/SKILL.md", SkillFile, RootOnly, all, rooCode},
		{".tabnine/agent/skills/**/SKILL.md", SkillFile, RootOnly, all, "Tabnine"},
		// Plugins.
		{".claude-plugin/marketplace.json", PluginMarketplace, RootOnly, all, claudeCode},
		{".cursor-plugin/marketplace.json", PluginMarketplace, RootOnly, all, cursor},
		{".agents/plugins/marketplace.json", PluginMarketplace, RootOnly, all, codex},
		{".github/plugin/marketplace.json", PluginMarketplace, RootOnly, all, copilot},
		{".factory-plugin/marketplace.json", PluginMarketplace, RootOnly, all, droid},
		{".codebuddy-plugin/marketplace.json", PluginMarketplace, RootOnly, all, codeBuddy},
		{".kode-plugin/marketplace.json", PluginMarketplace, RootOnly, all, kode},
		{".plugin/marketplace.json", PluginMarketplace, RootOnly, all, openPlugins},
		{".claude-plugin/plugin.json", PluginManifest, RootOnly, all, claudeCode},
		{".cursor-plugin/plugin.json", PluginManifest, RootOnly, all, cursor},
		{".codex-plugin/plugin.json", PluginManifest, RootOnly, all, codex},
		{".github/plugin/plugin.json", PluginManifest, RootOnly, all, copilot},
		{".factory-plugin/plugin.json", PluginManifest, RootOnly, all, droid},
		{".codebuddy-plugin/plugin.json", PluginManifest, RootOnly, all, codeBuddy},
		{".kode-plugin/plugin.json", PluginManifest, RootOnly, all, kode},
		{".kimi-plugin/plugin.json", PluginManifest, RootOnly, all, kimiCode},
		{".qoder-plugin/plugin.json", PluginManifest, RootOnly, all, qoder},
		{".plugin/plugin.json", PluginManifest, RootOnly, all, openPlugins},
		{"gemini-extension.json", PluginManifest, RootOnly, all, gemini},
		{"qwen-extension.json", PluginManifest, RootOnly, all, qwenCode},
		{"kimi.plugin.json", PluginManifest, RootOnly, all, kimiCode},
		// Skills in directories that are not hidden.
		{"skills/*/SKILL.md", SkillFile, EachPlugin, all, claudeCode},
		{"skills/*/SKILL.md", SkillFile, RootOnly, all, "anthropics/skills"},
		{"skills/*/*/SKILL.md", SkillFile, RootOnly, all, openaiSkills},
		{"skills/.*/*/SKILL.md", SkillFile, RootOnly, all, openaiSkills},
		{"*/SKILL.md", SkillFile, RootOnly, all, skillsSpec},
		{"SKILL.md", SkillFile, RootOnly, all, skillsSpec},
		// Commands.
		{".claude/commands/**/*.md", CommandFile, RootOnly, all, claudeCode},
		{".*/commands/**/*.md", CommandFile, RootOnly, all, claudeCode},
		{".*/commands/**/*.toml", GeminiCommand, RootOnly, all, gemini},
		{".*/command/**/*.md", CommandFile, RootOnly, all, opencode},
		{".github/prompts/*.prompt.md", PromptFile, RootOnly, all, copilot},
		{".agents/workflows/*.md", CommandFile, RootOnly, all, antigravity},
		{".agent/workflows/*.md", CommandFile, RootOnly, all, antigravity},
		{".amazonq/prompts/*.md", CommandFile, RootOnly, all, amazonQ},
		{".cline/workflows/*.md", CommandFile, RootOnly, all, cline},
		{".clinerules/workflows/*.md", CommandFile, RootOnly, all, cline},
		{".continue/prompts/*.md", CommandFile, RootOnly, all, continueDev},
		{".continue/prompts/*.prompt", CommandFile, RootOnly, all, continueDev},
		{".devin/workflows/*.md", CommandFile, RootOnly, all, devin},
		{".windsurf/workflows/*.md", CommandFile, RootOnly, all, windsurf},
		{".kilocode/workflows/*.md", CommandFile, RootOnly, all, kiloCode},
		{".kiro/prompts/*.md", CommandFile, RootOnly, all, kiro},
		{".pi/prompts/*.md", CommandFile, RootOnly, all, pi},
		{"commands/**/*.md", CommandFile, EachPlugin, all, claudeCode},
		{"commands/**/*.toml", GeminiCommand, EachPlugin, all, gemini},
		// MCP servers.
		{".mcp.json", MCPServers, RootOnly, all, claudeCode},
		{".mcp.json", MCPServers, EachPlugin, all, claudeCode},
		{"mcp.json", MCPServers, EachPlugin, all, cursor},
		{".vscode/mcp.json", VSCodeServers, RootOnly, all, "Visual Studio Code"},
		{".cursor/mcp.json", MCPServers, RootOnly, all, cursor},
		{".github/mcp.json", MCPServers, RootOnly, all, copilot},
		{".agents/.mcp.json", MCPServers, RootOnly, all, warp},
		{".gemini/settings.json", GeminiSettings, RootOnly, all, gemini},
		{"opencode.json", OpencodeSettings, RootOnly, all, opencode},
		{"opencode.jsonc", OpencodeSettings, RootOnly, all, opencode},
		{".opencode/opencode.json", OpencodeSettings, RootOnly, all, opencode},
		{".opencode/opencode.jsonc", OpencodeSettings, RootOnly, all, opencode},
		{".codex/config.toml", CodexSettings, RootOnly, all, codex},
		{".amazonq/mcp.json", MCPServers, RootOnly, all, amazonQ},
		{".amp/settings.json", AmpSettings, RootOnly, all, amp},
		{".augment/settings.json", GeminiSettings, RootOnly, all, augment},
		{".continue/mcpServers/*.json", MCPServers, RootOnly, all, continueDev},
		{".continue/mcpServers/*.yaml", ContinueServers, RootOnly, all, continueDev},
		{"crush.json", CrushSettings, RootOnly, all, crush},
		{".crush.json", CrushSettings, RootOnly, all, crush},
		{".factory/mcp.json", MCPServers, RootOnly, all, droid},
		{".grok/config.toml", CodexSettings, RootOnly, all, grok},
		{".idx/mcp.json", MCPServers, RootOnly, all, firebase},
		{".iflow/settings.json", GeminiSettings, RootOnly, all, iFlow},
		{".iflow/mcp.json", MCPServers, RootOnly, all, iFlow},
		{".junie/mcp/mcp.json", MCPServers, RootOnly, all, junie},
		{"kilo.json", OpencodeSettings, RootOnly, all, kiloCode},
		{"kilo.jsonc", OpencodeSettings, RootOnly, all, kiloCode},
		{".kilo/kilo.json", OpencodeSettings, RootOnly, all, kiloCode},
		{".kilo/kilo.jsonc", OpencodeSettings, RootOnly, all, kiloCode},
		{".kilocode/mcp.json", MCPServers, RootOnly, all, kiloCode},
		{".kimi-code/mcp.json", MCPServers, RootOnly, all, kimiCode},
		{".kiro/settings/mcp.json", MCPServers, RootOnly, all, kiro},
		{".neovate/config.json", GeminiSettings, RootOnly, all, neovate},
		{".qwen/settings.json", GeminiSettings, RootOnly, all, qwenCode},
		{".roo/mcp.json", MCPServers, RootOnly, all, rooCode},
		{".trae/mcp.json", MCPServers, RootOnly, all, trae},
		{".vibe/config.toml", VibeSettings, RootOnly, all, vibe},
		{".warp/.mcp.json", MCPServers, RootOnly, all, warp},
		{".zed/settings.json", ZedSettings, RootOnly, all, zed},
	}
}
