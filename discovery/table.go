package discovery

// line is a row of the table as it is written here.
type line struct {
	pattern string
	format  Format
	where   place
	source  string
}

// place says where a row applies, and whether a directory has only one of its files.
type place struct {
	level Level
	one   bool
}

// table returns what agents read in a folder. Earlier rows take precedence. testdata/sources.txt
// says for each row where its agent documents it or does it, and whether anybody looked: a new row
// needs a line there.
func table() []line {
	atTop, oneAtTop := place{level: RootOnly}, place{level: RootOnly, one: true}
	below, oneBelow := place{level: EveryDirectory}, place{level: EveryDirectory, one: true}
	inPlugin := place{level: EachPlugin}
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
	return []line{
		// Instructions.
		{"AGENTS.override.md", Text, oneBelow, codex},
		{"AGENTS.md", Text, oneBelow, "agents.md"},
		{"AGENT.md", Text, oneBelow, amp},
		{"CLAUDE.md", TextWithImports, oneBelow, claudeCode},
		{".claude/CLAUDE.md", TextWithImports, oneBelow, claudeCode},
		{"GEMINI.md", TextWithImports, oneBelow, gemini},
		{"QWEN.md", TextWithImports, oneBelow, qwenCode},
		{"WARP.md", Text, oneBelow, warp},
		{"IFLOW.md", TextWithImports, oneBelow, iFlow},
		{"CODEBUDDY.md", TextWithImports, oneBelow, codeBuddy},
		{".codebuddy/CODEBUDDY.md", TextWithImports, oneBelow, codeBuddy},
		{"CRUSH.md", Text, oneAtTop, crush},
		{"crush.md", Text, oneAtTop, crush},
		{"Crush.md", Text, oneAtTop, crush},
		{".rules", Text, oneAtTop, zed},
		{".cursorrules", Text, oneAtTop, cursor},
		{".windsurfrules", Text, oneAtTop, windsurf},
		{".clinerules", Text, oneAtTop, cline},
		{".roorules", Text, oneAtTop, rooCode},
		{".kilocoderules", Text, oneAtTop, kiloCode},
		{".continuerules", Text, oneAtTop, continueDev},
		{".augment-guidelines", Text, oneAtTop, augment},
		{".goosehints", Text, oneAtTop, goose},
		{".junie/AGENTS.md", Text, oneAtTop, junie},
		{".junie/guidelines.md", Text, oneAtTop, junie},
		{".idx/airules.md", Text, oneAtTop, firebase},
		{"replit.md", Text, oneAtTop, "Replit"},
		{".kimi-code/AGENTS.md", Text, atTop, kimiCode},
		{".xum/AGENTS.md", Text, atTop, xum},
		{".xum/AGENTS.local.md", Text, atTop, xum},
		{"AGENTS.local.md", Text, atTop, rooCode},
		{"CLAUDE.local.md", TextWithImports, below, claudeCode},
		{"CODEBUDDY.local.md", TextWithImports, below, codeBuddy},
		{"CRUSH.local.md", Text, atTop, crush},
		{"crush.local.md", Text, atTop, crush},
		{"Crush.local.md", Text, atTop, crush},
		{".github/copilot-instructions.md", Text, atTop, copilot},
		{".github/instructions/**/*.instructions.md", CopilotRule, atTop, copilot},
		{".claude/rules/**/*.md", AnchoredRule, atTop, claudeCode},
		{".cursor/rules/**/*.mdc", CursorRule, below, cursor},
		{".windsurf/rules/**/*.md", Rule, below, windsurf},
		{".devin/rules/**/*.md", Rule, below, devin},
		{".clinerules/*.md", AnchoredRule, atTop, cline},
		{".clinerules/*.txt", AnchoredRule, atTop, cline},
		{".cline/rules/**/*.txt", AnchoredRule, atTop, cline},
		{".roo/rules/**/*.md", Text, below, rooCode},
		{".roo/rules/**/*.txt", Text, below, rooCode},
		{".roo/rules/**/*.xml", Text, below, rooCode},
		{".roo/rules-*/**/*.md", RooModeRule, below, rooCode},
		{".roo/rules-*/**/*.txt", RooModeRule, below, rooCode},
		{".roo/rules-*/**/*.xml", RooModeRule, below, rooCode},
		{".roorules-*", RooModeRule, atTop, rooCode},
		{".clinerules-*", RooModeRule, atTop, rooCode},
		{".kilocode/rules-*/**/*.md", RooModeRule, atTop, kiloCode},
		{".kiro/steering/**/*.md", Rule, atTop, kiro},
		{".augment/rules/**/*.md", Rule, atTop, augment},
		{".qoder/rules/**/*.md", Rule, atTop, qoder},
		{".lingma/rules/**/*.md", Rule, atTop, lingma},
		{".codebuddy/rules/**/*.mdc", AnchoredRule, atTop, codeBuddy},
		{".grok/rules/*.md", Text, below, grok},
		{".agents/rules/**/*.md", Rule, atTop, antigravity},
		{".agent/rules/**/*.md", Rule, atTop, antigravity},
		{".*/rules/**/*.md", AnchoredRule, atTop, continueDev},
		{".openhands/microagents/**/*.md", Microagent, atTop, openHands},
		{".openhands/skills/*.md", Microagent, atTop, openHands},
		// Skills.
		{".agents/skills/**/SKILL.md", SkillFile, below, skillsSpec},
		{".claude/skills/**/SKILL.md", SkillFile, below, claudeCode},
		{".opencode/skill/**/SKILL.md", SkillFile, atTop, opencode},
		{".*/skills/**/SKILL.md", SkillFile, atTop, skillsSpec},
		{".posit/assistant/skills/**/SKILL.md", SkillFile, atTop, "Posit Assistant"},
		{".roo/skills-*/**/SKILL.md", SkillFile, atTop, rooCode},
		{".tabnine/agent/skills/**/SKILL.md", SkillFile, atTop, "Tabnine"},
		// Plugins.
		{".claude-plugin/marketplace.json", PluginMarketplace, atTop, claudeCode},
		{".cursor-plugin/marketplace.json", PluginMarketplace, atTop, cursor},
		{".agents/plugins/marketplace.json", PluginMarketplace, atTop, codex},
		{".github/plugin/marketplace.json", PluginMarketplace, atTop, copilot},
		{".factory-plugin/marketplace.json", PluginMarketplace, atTop, droid},
		{".codebuddy-plugin/marketplace.json", PluginMarketplace, atTop, codeBuddy},
		{".kode-plugin/marketplace.json", PluginMarketplace, atTop, kode},
		{".plugin/marketplace.json", PluginMarketplace, atTop, openPlugins},
		{".claude-plugin/plugin.json", PluginManifest, atTop, claudeCode},
		{".cursor-plugin/plugin.json", PluginManifest, atTop, cursor},
		{".codex-plugin/plugin.json", PluginManifest, atTop, codex},
		{".github/plugin/plugin.json", PluginManifest, atTop, copilot},
		{".factory-plugin/plugin.json", PluginManifest, atTop, droid},
		{".codebuddy-plugin/plugin.json", PluginManifest, atTop, codeBuddy},
		{".kode-plugin/plugin.json", PluginManifest, atTop, kode},
		{".kimi-plugin/plugin.json", PluginManifest, atTop, kimiCode},
		{".qoder-plugin/plugin.json", PluginManifest, atTop, qoder},
		{".plugin/plugin.json", PluginManifest, atTop, openPlugins},
		{"gemini-extension.json", PluginManifest, atTop, gemini},
		{"qwen-extension.json", PluginManifest, atTop, qwenCode},
		{"kimi.plugin.json", PluginManifest, atTop, kimiCode},
		// Skills in directories that are not hidden.
		{"skills/*/SKILL.md", SkillFile, inPlugin, claudeCode},
		{"skills/*/SKILL.md", SkillFile, atTop, "anthropics/skills"},
		{"skills/*/*/SKILL.md", SkillFile, atTop, openaiSkills},
		{"skills/.*/*/SKILL.md", SkillFile, atTop, openaiSkills},
		{"*/SKILL.md", SkillFile, atTop, skillsSpec},
		{"SKILL.md", SkillFile, atTop, skillsSpec},
		// Commands.
		{".claude/commands/**/*.md", CommandFile, atTop, claudeCode},
		{".*/commands/**/*.md", CommandFile, atTop, claudeCode},
		{".*/commands/**/*.toml", GeminiCommand, atTop, gemini},
		{".*/command/**/*.md", CommandFile, atTop, opencode},
		{".github/prompts/*.prompt.md", PromptFile, atTop, copilot},
		{".agents/workflows/*.md", CommandFile, atTop, antigravity},
		{".agent/workflows/*.md", CommandFile, atTop, antigravity},
		{".amazonq/prompts/*.md", CommandFile, atTop, amazonQ},
		{".cline/workflows/*.md", CommandFile, atTop, cline},
		{".clinerules/workflows/*.md", CommandFile, atTop, cline},
		{".continue/prompts/*.md", CommandFile, atTop, continueDev},
		{".continue/prompts/*.prompt", CommandFile, atTop, continueDev},
		{".devin/workflows/*.md", CommandFile, atTop, devin},
		{".windsurf/workflows/*.md", CommandFile, atTop, windsurf},
		{".kilocode/workflows/*.md", CommandFile, atTop, kiloCode},
		{".kiro/prompts/*.md", CommandFile, atTop, kiro},
		{".pi/prompts/*.md", CommandFile, atTop, pi},
		{"commands/**/*.md", CommandFile, inPlugin, claudeCode},
		{"commands/**/*.toml", GeminiCommand, inPlugin, gemini},
		// MCP servers.
		{".mcp.json", MCPServers, atTop, claudeCode},
		{".mcp.json", MCPServers, inPlugin, claudeCode},
		{"mcp.json", MCPServers, inPlugin, cursor},
		{".vscode/mcp.json", VSCodeServers, atTop, "Visual Studio Code"},
		{".cursor/mcp.json", MCPServers, atTop, cursor},
		{".github/mcp.json", MCPServers, atTop, copilot},
		{".agents/.mcp.json", MCPServers, atTop, warp},
		{".gemini/settings.json", GeminiSettings, atTop, gemini},
		{"opencode.json", OpencodeSettings, atTop, opencode},
		{"opencode.jsonc", OpencodeSettings, atTop, opencode},
		{".opencode/opencode.json", OpencodeSettings, atTop, opencode},
		{".opencode/opencode.jsonc", OpencodeSettings, atTop, opencode},
		{".codex/config.toml", CodexSettings, atTop, codex},
		{".amazonq/mcp.json", MCPServers, atTop, amazonQ},
		{".amp/settings.json", AmpSettings, atTop, amp},
		{".augment/settings.json", GeminiSettings, atTop, augment},
		{".continue/mcpServers/*.json", MCPServers, atTop, continueDev},
		{".continue/mcpServers/*.yaml", ContinueServers, atTop, continueDev},
		{"crush.json", CrushSettings, atTop, crush},
		{".crush.json", CrushSettings, atTop, crush},
		{".factory/mcp.json", MCPServers, atTop, droid},
		{".grok/config.toml", CodexSettings, atTop, grok},
		{".idx/mcp.json", MCPServers, atTop, firebase},
		{".iflow/settings.json", GeminiSettings, atTop, iFlow},
		{".iflow/mcp.json", MCPServers, atTop, iFlow},
		{".junie/mcp/mcp.json", MCPServers, atTop, junie},
		{"kilo.json", OpencodeSettings, atTop, kiloCode},
		{"kilo.jsonc", OpencodeSettings, atTop, kiloCode},
		{".kilo/kilo.json", OpencodeSettings, atTop, kiloCode},
		{".kilo/kilo.jsonc", OpencodeSettings, atTop, kiloCode},
		{".kilocode/mcp.json", MCPServers, atTop, kiloCode},
		{".kimi-code/mcp.json", MCPServers, atTop, kimiCode},
		{".kiro/settings/mcp.json", MCPServers, atTop, kiro},
		{".neovate/config.json", GeminiSettings, atTop, neovate},
		{".qwen/settings.json", GeminiSettings, atTop, qwenCode},
		{".roo/mcp.json", MCPServers, atTop, rooCode},
		{".trae/mcp.json", MCPServers, atTop, trae},
		{".vibe/config.toml", VibeSettings, atTop, vibe},
		{".warp/.mcp.json", MCPServers, atTop, warp},
		{".zed/settings.json", ZedSettings, atTop, zed},
	}
}
