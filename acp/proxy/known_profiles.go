package proxy

// KnownProfiles returns the profiles of well-known agents, sorted by name.
func KnownProfiles() []Profile {
	ofClaude := []string{"CLAUDE.md", "*/**/CLAUDE.md", ".claude/CLAUDE.md", "CLAUDE.local.md",
		".claude/rules/**/*.md", ".claude/skills/*/SKILL.md", ".claude/commands/**/*.md"}
	return []Profile{
		{
			Name: "auggie", Title: "Auggie CLI", Command: "auggie", Args: []string{"--acp"},
			State:    []string{"~/.augment/"},
			Packages: []string{"@augmentcode/auggie"},
			Login:    "auggie login", Install: "npm install -g @augmentcode/auggie",
			Checked: "0.36.0",
		},
		{
			Name: "claude", Title: "Claude Code", Command: "claude-agent-acp",
			State: []string{"~/.claude/", "~/.claude.json", "$CLAUDE_CONFIG_DIR/"},
			Packages: []string{"@agentclientprotocol/claude-agent-acp",
				"@zed-industries/claude-agent-acp", "@zed-industries/claude-code-acp"},
			Finds:          ofClaude,
			FindsOtherwise: []string{"AGENTS.md"},
			FindsInRoots:   []string{".claude/skills/*/SKILL.md"},
			Commands: []string{"add-dir", "bashes", "branch", "btw", "bug", "continue", "copy",
				"cost", "diff", "export", "feedback", "fork", "hooks", "ide", "keybindings-help",
				"memory", "mobile", "name", "new", "output-style:new", "permissions", "plan",
				"plugin", "privacy-settings", "rate-limit-options", "release-notes", "remote",
				"remote-env", "restart", "resume", "review", "rewind", "sandbox", "session",
				"settings", "share", "skills", "stats", "status", "stickers", "teleport",
				"terminal-setup", "theme", "todos", "undo", "upgrade", "vim", "workflows"},
			ListLimit: 1000, // a page
			Login:     "claude /login",
			Install:   "npm install -g @agentclientprotocol/claude-agent-acp",
			Checked:   "0.100.0",
		},
		{
			// The former name of claude-agent-acp.
			Name: "claude-code-acp", Title: "Claude Code, older adapter",
			State:   []string{"~/.claude/", "~/.claude.json", "$CLAUDE_CONFIG_DIR/"},
			Command: "claude-code-acp", Identity: "claude", Finds: ofClaude,
			Relay:   true, // it tells MCP servers only the working directory
			Login:   "claude /login",
			Install: "npm install -g @agentclientprotocol/claude-agent-acp",
		},
		{
			Name: "cline", Title: "Cline", Command: "cline", Args: []string{"--acp"},
			State:    []string{"~/.cline/"},
			Packages: []string{"cline"},
			Finds:    []string{"AGENTS.md", ".clinerules", ".clinerules/**"},
			// It does not connect a session's MCP servers.
			Tools: ToolsOff,
			Login: "cline auth", Install: "npm install -g cline", Checked: "3.0.65",
		},
		{
			Name: "codex", Title: "Codex", Command: "codex-acp",
			State:    []string{"~/.codex/", "$CODEX_HOME/"},
			Packages: []string{"@agentclientprotocol/codex-acp", "@zed-industries/codex-acp"},
			Relay:    true, // it tells MCP servers no roots
			Finds: []string{"AGENTS.override.md", "AGENTS.md", ".agents/skills/**/SKILL.md",
				".codex/skills/**/SKILL.md"},
			FindsInRoots: []string{".agents/skills/**/SKILL.md"},
			SandboxHint: "Codex's own sandbox (bubblewrap) does not start inside acp-agent's, and " +
				"without it Codex runs no commands. Choose its mode **Full access**: acp-agent's " +
				"sandbox still holds, but Codex asks for nothing.",
			// It stores the writable directories of its sandbox with the session.
			KeepsRoots: true,
			Login:      "codex login", Install: "npm install -g @agentclientprotocol/codex-acp",
			Checked: "2.6.0",
		},
		{
			Name: "copilot", Title: "GitHub Copilot CLI", Command: "copilot",
			// It unpacks itself into a cache when it is started for the first time.
			State: []string{"~/.copilot/", "~/.cache/copilot/", "$COPILOT_HOME/",
				"$COPILOT_CACHE_HOME/", "$COPILOT_PKG_CACHE_HOME/", "$XDG_CACHE_HOME/copilot/"},
			Args:     []string{"--acp"},
			Packages: []string{"@github/copilot"},
			// It refuses a session's stdio MCP servers. With --acp its --add-dir has no effect: it
			// still asks for permission, and its model does not learn of the directories.
			Tools: ToolsOff, ContextFiles: CopilotInstructions,
			Finds: []string{"AGENTS.md", "CLAUDE.md", ".claude/CLAUDE.md", "GEMINI.md",
				".github/copilot-instructions.md", ".github/instructions/**", ".claude/rules/**",
				".agents/skills/**", ".claude/skills/**", ".github/skills/**",
				".claude/commands/**"},
			Commands: []string{"models", "sessions"},
			Login:    "copilot login", Install: "npm install -g @github/copilot",
			Checked: "1.0.102",
		},
		{
			Name: "cursor", Title: "Cursor CLI", Command: "cursor-agent", Args: []string{"acp"},
			State: []string{"~/.cursor/", "~/.config/cursor/"},
			Login: "cursor-agent login", Install: "see cursor.com/cli",
		},
		{
			Name: "gemini", Title: "Gemini CLI", Command: "gemini", Args: []string{"--acp"},
			State:    []string{"~/.gemini/"},
			Packages: []string{"@google/gemini-cli"},
			Flag:     "--include-directories", FlagSplits: ",", LateReplay: true,
			ModeNotice: "[MODE_UPDATE] ", ServerInstructions: true,
			Finds: []string{"GEMINI.md", "*/**/GEMINI.md", ".agents/skills/*/SKILL.md",
				".gemini/skills/*/SKILL.md", ".gemini/commands/**"},
			FindsInRoots: []string{"**/GEMINI.md"},
			Login:        "gemini", Install: "npm install -g @google/gemini-cli", Checked: "0.61.0",
		},
		{
			Name: "goose", Title: "goose", Command: "goose", Args: []string{"acp"},
			State:   []string{"~/.config/goose/", "~/.local/share/goose/", "~/.local/state/goose/"},
			Relay:   true, // it tells MCP servers only the working directory
			OwnTemp: true, ServerInstructions: true,
			Finds: []string{"AGENTS.md", "*/**/AGENTS.md", ".goosehints", ".agents/skills/**",
				".claude/skills/**", ".goose/skills/**"},
			Login: "goose configure", Install: "see goose-docs.ai", Checked: "1.52.0",
		},
		{
			// A descendant of opencode.
			Name: "kilo", CommandContext: true, Title: "Kilo", Command: "kilo",
			State: []string{"~/.config/kilo/", "~/.cache/kilo/", "~/.local/share/kilo/",
				"~/.local/state/kilo/", "~/.local/state/kilo-sandbox-policy/",
				"$XDG_CONFIG_HOME/kilo/", "$XDG_CACHE_HOME/kilo/", "$XDG_DATA_HOME/kilo/",
				"$XDG_STATE_HOME/kilo/", "$XDG_STATE_HOME/kilo-sandbox-policy/"},
			Args:          []string{"acp"},
			Packages:      []string{"@kilocode/cli"},
			ListLimit:     100,
			Relay:         true, // it tells MCP servers only the working directory
			SharesServers: true, ServerInstructions: true,
			Login: "kilo auth login", Install: "npm install -g @kilocode/cli", Checked: "7.7.9",
		},
		{
			Name: "kimi", Title: "Kimi CLI", Command: "kimi", Args: []string{"acp"},
			State: []string{"~/.kimi-code/", "~/.kimi/", "~/.cache/kimi-code/", "$KIMI_CODE_HOME/",
				"$KIMI_CODE_CACHE_DIR/", "$XDG_CACHE_HOME/kimi-code/"},
			Login: "kimi, then /login", Install: "uv tool install kimi-cli",
		},
		{
			Name: "kiro", Title: "Kiro CLI", Command: "kiro-cli", Args: []string{"acp"},
			State: []string{"~/.kiro/", "~/.local/share/kiro-cli/"},
			Login: "kiro-cli login", Install: "see kiro.dev",
		},
		{
			Name: "opencode", CommandContext: true, Title: "opencode", Command: "opencode",
			State: []string{"~/.config/opencode/", "~/.cache/opencode/", "~/.local/share/opencode/",
				"~/.local/state/opencode/", "$XDG_CONFIG_HOME/opencode/", "$XDG_CACHE_HOME/opencode/",
				"$XDG_DATA_HOME/opencode/", "$XDG_STATE_HOME/opencode/"},
			Args:     []string{"acp"},
			Packages: []string{"opencode-ai"},
			Finds: []string{"AGENTS.md", "*/**/AGENTS.md", ".agents/skills/**", ".claude/skills/**",
				".opencode/skill/**", ".opencode/skills/**", ".opencode/command/**",
				".opencode/commands/**"},
			FindsOtherwise: []string{"CLAUDE.md"},
			ListLimit:      100,
			Relay:          true, // it tells MCP servers only the working directory
			SharesServers:  true, ServerInstructions: true,
			AskEnv: []string{`OPENCODE_PERMISSION={"acp_agent_roots*_write_file":"ask",` +
				`"acp_agent_roots*_edit_file":"ask",` +
				`"acp_agent_roots*_create_directory":"ask","acp_agent_roots*_delete_file":"ask",` +
				`"acp_agent_roots*_move_file":"ask"}`},
			Login: "opencode auth login", Install: "npm install -g opencode-ai", Checked: "1.18.33",
		},
		{
			Name: "pi", Title: "pi", Command: "pi-acp",
			State:    []string{"~/.pi/"},
			Packages: []string{"pi-acp"},
			// It does not connect MCP servers.
			LossyReplay: true, Tools: ToolsOff, Banner: "pi v", ContextFiles: PiExtension,
			ListLimit: 50, // a page
			Finds:     []string{"AGENTS.md"}, FindsOtherwise: []string{"CLAUDE.md"},
			Login:   "pi, then /login",
			Install: "npm install -g pi-acp @earendil-works/pi-coding-agent", Checked: "0.0.34",
		},
		{
			Name: "qwen", Title: "Qwen Code", Command: "qwen", Args: []string{"--acp"},
			State:    []string{"~/.qwen/", "$QWEN_HOME/", "$QWEN_RUNTIME_DIR/"},
			Packages: []string{"@qwen-code/qwen-code"},
			Flag:     "--include-directories", FlagSplits: ",",
			ListLimit: 20, // a page
			Finds: []string{"AGENTS.md", "QWEN.md", ".agents/skills/*/SKILL.md",
				".qwen/skills/*/SKILL.md", ".qwen/commands/**"},
			OwnDirs: []string{
				"~/.qwen/tmp", "~/.qwen/memories", "~/.qwen/projects", "$QWEN_HOME/tmp",
				"$QWEN_HOME/memories", "$QWEN_HOME/projects", "$QWEN_RUNTIME_DIR/tmp",
				"$QWEN_RUNTIME_DIR/projects",
			},
			Commands: []string{"about", "agents", "mcp", "memory", "new", "permissions", "plan",
				"rename", "restore", "resume", "rewind", "settings", "share", "summarize", "theme",
				"tools", "usage"},
			Login: "qwen", Install: "npm install -g @qwen-code/qwen-code", Checked: "0.24.4",
		},
		{
			Name: "vibe", Title: "Mistral Vibe", Command: "vibe-acp",
			State: []string{"~/.vibe/", "$VIBE_HOME/"},
			Login: "vibe --setup", Install: "uv tool install mistral-vibe",
		},
	}
}
