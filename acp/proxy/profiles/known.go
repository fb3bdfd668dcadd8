package profiles

import (
	"slices"

	"github.com/acp-agent/acp-agent/acp/backend"
)

// Known returns the profiles of the known agents, sorted by name.
func Known() []Profile {
	return []Profile{
		{
			Name: "auggie", Title: "Auggie CLI", Checked: "0.36.0",
			Start: Start{
				Command: "auggie", Args: []string{"--acp"},
				Packages: []string{"@augmentcode/auggie"},
				Login:    "auggie login", Install: "npm install -g @augmentcode/auggie",
			},
			State: State{Writes: []string{"~/.augment/"}},
		},
		{
			Name: "claude", Title: "Claude Code", Checked: "0.100.0",
			Start: Start{
				Command: "claude-agent-acp",
				Packages: []string{"@agentclientprotocol/claude-agent-acp",
					"@zed-industries/claude-agent-acp", "@zed-industries/claude-code-acp"},
				Login: "claude /login", Install: "npm install -g @agentclientprotocol/claude-agent-acp",
			},
			Finds: Finds{
				InCwd: claudeFinds(), Otherwise: []string{"AGENTS.md"},
				InRoots:  []string{".claude/skills/*/SKILL.md"},
				Commands: claudeCommands(),
			},
			State:  State{Writes: claudeWrites(), Hosts: claudeHosts()},
			Replay: Replay{ListLimit: 1000}, // a page
			// Its SDK keeps the total with the conversation since 0.3.277.
			Usage: Usage{Tokens: backend.TokensOfTurn, Restarts: true, KeepsFrom: "0.80.0"},
		},
		{
			// The former name of claude-agent-acp.
			Name: "claude-code-acp", Title: "Claude Code, older adapter", Identity: "claude",
			Start: Start{
				Command: "claude-code-acp",
				Login:   "claude /login", Install: "npm install -g @agentclientprotocol/claude-agent-acp",
			},
			Roots: Roots{Relay: true}, // it tells MCP servers only the working directory
			Finds: Finds{InCwd: claudeFinds()},
			State: State{Writes: claudeWrites(), Hosts: claudeHosts()},
			Usage: Usage{Tokens: backend.TokensOfTurn, Restarts: true},
		},
		{
			Name: "cline", Title: "Cline", Checked: "3.0.65",
			Start: Start{
				Command: "cline", Args: []string{"--acp"}, Packages: []string{"cline"},
				Login: "cline auth", Install: "npm install -g cline",
			},
			Roots: Roots{Tools: ToolsOff}, // it does not connect a session's MCP servers
			Finds: Finds{InCwd: []string{"AGENTS.md", ".clinerules", ".clinerules/*",
				".clinerules/workflows/*", ".clinerules/skills/*/SKILL.md", ".cline/rules/*",
				".cline/workflows/*", ".cline/skills/*/SKILL.md", ".agents/skills/*/SKILL.md"}},
			State: State{Writes: []string{"~/.cline/"}},
		},
		{
			Name: "codex", Title: "Codex", Checked: "2.6.0",
			Start: Start{
				Command:  "codex-acp",
				Packages: []string{"@agentclientprotocol/codex-acp", "@zed-industries/codex-acp"},
				Login:    "codex login", Install: "npm install -g @agentclientprotocol/codex-acp",
			},
			AsksLittle: "before it leaves its own sandbox, but not in its modes Auto review and Full access",
			Roots: Roots{
				Keeps: true, // it stores the writable directories of its sandbox with the session
				Relay: true, // it tells MCP servers no roots
			},
			Finds: Finds{
				InCwd: []string{"AGENTS.override.md", "AGENTS.md", ".agents/skills/**/SKILL.md",
					".codex/skills/**/SKILL.md"},
				InRoots: []string{".agents/skills/**/SKILL.md"},
			},
			State: State{
				Writes: []string{"~/.codex/", "$CODEX_HOME/"},
				SandboxHint: "Codex's own sandbox (bubblewrap) does not start inside acp-agent's, and " +
					"without it Codex runs no commands. Choose its mode **Full access**: acp-agent's " +
					"sandbox still holds, but Codex asks for nothing.",
			},
			Usage: Usage{Tokens: backend.TokensOfTurn},
		},
		{
			Name: "copilot", Title: "GitHub Copilot CLI", Checked: "1.0.102",
			Start: Start{
				Command: "copilot", Args: []string{"--acp"}, Packages: []string{"@github/copilot"},
				Login: "copilot login", Install: "npm install -g @github/copilot",
			},
			// It refuses a session's stdio MCP servers. With --acp its --add-dir has no effect: it
			// still asks for permission, and its model does not learn of the directories.
			Roots: Roots{Tools: ToolsOff},
			Finds: Finds{
				InCwd: []string{"AGENTS.md", "CLAUDE.md", ".claude/CLAUDE.md", "GEMINI.md",
					".github/copilot-instructions.md", ".github/instructions/**", ".claude/rules/**",
					".agents/skills/**", ".claude/skills/**", ".github/skills/**",
					".claude/commands/**"},
				Commands: []string{"models", "sessions"},
			},
			// It unpacks itself into a cache when it is started for the first time.
			State: State{Writes: []string{"~/.copilot/", "~/.cache/copilot/", "$COPILOT_HOME/",
				"$COPILOT_CACHE_HOME/", "$COPILOT_PKG_CACHE_HOME/", "$XDG_CACHE_HOME/copilot/"}},
		},
		{
			Name: "cursor", Title: "Cursor CLI",
			Start: Start{
				Command: "cursor-agent", Args: []string{"acp"},
				Login: "cursor-agent login", Install: "see cursor.com/cli",
			},
			State: State{Writes: []string{"~/.cursor/", "~/.config/cursor/"}},
		},
		{
			Name: "gemini", Title: "Gemini CLI", Checked: "0.61.0",
			Start: Start{
				Command: "gemini", Args: []string{"--acp"}, Packages: []string{"@google/gemini-cli"},
				Login: "gemini", Install: "npm install -g @google/gemini-cli",
			},
			Roots: Roots{Flag: "--include-directories", FlagSplits: ","},
			Finds: Finds{
				InCwd: []string{"GEMINI.md", "*/**/GEMINI.md", ".agents/skills/*/SKILL.md",
					".gemini/skills/*/SKILL.md", ".gemini/commands/**"},
				InRoots: []string{"**/GEMINI.md"},
			},
			Context: Context{ByServer: true},
			State:   State{Writes: []string{"~/.gemini/"}},
			Replay:  Replay{Late: true, ModeNotice: "[MODE_UPDATE] "},
		},
		{
			Name: "goose", Title: "goose", Checked: "1.52.0",
			Start: Start{
				Command: "goose", Args: []string{"acp"},
				Login: "goose configure", Install: "see goose-docs.ai",
			},
			AsksLittle: "if `GOOSE_MODE` or the session's mode says so",
			Roots:      Roots{Relay: true}, // it tells MCP servers only the working directory
			Finds: Finds{InCwd: []string{"AGENTS.md", "*/**/AGENTS.md", ".goosehints",
				".agents/skills/**", ".claude/skills/**", ".goose/skills/**"}},
			Context: Context{ByServer: true},
			State:   State{Writes: xdg("goose"), OwnTemp: true},
		},
		{
			// A descendant of opencode.
			Name: "kilo", Title: "Kilo", Checked: "7.7.9",
			Start: Start{
				Command: "kilo", Args: []string{"acp"}, Packages: []string{"@kilocode/cli"},
				Login: "kilo auth login", Install: "npm install -g @kilocode/cli",
			},
			AsksLittle: asksIfConfigured,
			Roots: Roots{
				Relay:         true, // it tells MCP servers only the working directory
				SharesServers: true,
			},
			Context: Context{AfterCommands: true, ByServer: true},
			State: State{Writes: slices.Concat(xdg("kilo"), []string{
				"~/.local/state/kilo-sandbox-policy/", "$XDG_STATE_HOME/kilo-sandbox-policy/"})},
			Replay: Replay{ListLimit: 100},
		},
		{
			Name: "kimi", Title: "Kimi Code",
			Start: Start{
				Command: "kimi", Args: []string{"acp"},
				Packages: []string{"@moonshot-ai/kimi-code", "kimi-cli"},
				Login:    "kimi, then /login", Install: "npm install -g @moonshot-ai/kimi-code",
			},
			Roots: Roots{OnlyNew: true},
			State: State{
				OwnDirs: []string{"~/.kimi/plans", "~/.kimi/sessions", "~/.kimi-code/plans",
					"~/.kimi-code/sessions", "$KIMI_CODE_HOME/plans", "$KIMI_CODE_HOME/sessions"},
				Writes: []string{"~/.kimi-code/", "~/.kimi/", "~/.cache/kimi-code/",
					"$KIMI_CODE_HOME/", "$KIMI_CODE_CACHE_DIR/", "$XDG_CACHE_HOME/kimi-code/"},
			},
		},
		{
			Name: "kiro", Title: "Kiro CLI",
			Start: Start{
				Command: "kiro-cli", Args: []string{"acp"},
				Login: "kiro-cli login", Install: "see kiro.dev",
			},
			State: State{Writes: []string{"~/.kiro/", "~/.local/share/kiro-cli/"}},
		},
		{
			Name: "opencode", Title: "opencode", Checked: "1.18.33",
			Start: Start{
				Command: "opencode", Args: []string{"acp"}, Packages: []string{"opencode-ai"},
				Login: "opencode auth login", Install: "npm install -g opencode-ai",
			},
			AsksLittle: asksIfConfigured,
			Roots: Roots{
				Relay:         true, // it tells MCP servers only the working directory
				SharesServers: true,
				AskEnv: []string{`OPENCODE_PERMISSION={"acp_agent_roots*_write_file":"ask",` +
					`"acp_agent_roots*_edit_file":"ask",` +
					`"acp_agent_roots*_create_directory":"ask","acp_agent_roots*_delete_file":"ask",` +
					`"acp_agent_roots*_move_file":"ask"}`},
			},
			Finds: Finds{
				InCwd: []string{"AGENTS.md", "*/**/AGENTS.md", ".agents/skills/**",
					".claude/skills/**", ".opencode/skill/**", ".opencode/skills/**",
					".opencode/command/**", ".opencode/commands/**"},
				Otherwise: []string{"CLAUDE.md"},
			},
			Context: Context{AfterCommands: true, ByServer: true},
			State: State{Writes: xdg("opencode"),
				Hosts: []string{"opencode.ai", "models.opencode.ai"}}, // without other providers
			Replay: Replay{ListLimit: 100},
		},
		{
			Name: "pi", Title: "pi", Checked: "0.0.34",
			Start: Start{
				Command: "pi-acp", Packages: []string{"pi-acp"},
				Login: "pi, then /login", Install: "npm install -g pi-acp @earendil-works/pi-coding-agent",
			},
			Roots:     Roots{Tools: ToolsOff}, // it does not connect MCP servers
			NeverAsks: true,
			// Without a terminal it uses .pi and .agents only in folders that the user trusted before.
			Finds:  Finds{InCwd: []string{"AGENTS.md"}, Otherwise: []string{"CLAUDE.md"}},
			State:  State{Writes: []string{"~/.pi/"}},
			Replay: Replay{ListLimit: 50, Banner: "pi v"}, // a page
		},
		{
			Name: "qwen", Title: "Qwen Code", Checked: "0.24.4",
			Start: Start{
				Command: "qwen", Args: []string{"--acp"}, Packages: []string{"@qwen-code/qwen-code"},
				Login: "qwen", Install: "npm install -g @qwen-code/qwen-code",
			},
			Roots: Roots{Flag: "--include-directories", FlagSplits: ","},
			Finds: Finds{
				InCwd: []string{"AGENTS.md", "QWEN.md", ".agents/skills/*/SKILL.md",
					".qwen/skills/*/SKILL.md", ".qwen/commands/**"},
				Commands: []string{"about", "agents", "mcp", "memory", "new", "permissions", "plan",
					"rename", "restore", "resume", "rewind", "settings", "share", "summarize",
					"theme", "tools", "usage"},
			},
			State: State{
				OwnDirs: []string{
					"~/.qwen/tmp", "~/.qwen/memories", "~/.qwen/projects", "$QWEN_HOME/tmp",
					"$QWEN_HOME/memories", "$QWEN_HOME/projects", "$QWEN_RUNTIME_DIR/tmp",
					"$QWEN_RUNTIME_DIR/projects",
				},
				Writes: []string{"~/.qwen/", "$QWEN_HOME/", "$QWEN_RUNTIME_DIR/"},
			},
			Replay: Replay{ListLimit: 20}, // a page
		},
		{
			Name: "vibe", Title: "Mistral Vibe",
			Start: Start{
				Command: "vibe-acp",
				Login:   "vibe --setup", Install: "uv tool install mistral-vibe",
			},
			State: State{Writes: []string{"~/.vibe/", "$VIBE_HOME/"}},
		},
	}
}

// asksIfConfigured says when opencode and its descendants ask.
const asksIfConfigured = "if its configuration says so, `\"permission\": {\"edit\": \"ask\", \"bash\": \"ask\"}`"

// xdg returns the directories that the XDG Base Directory Specification gives a program.
func xdg(name string) []string {
	return []string{
		"~/.config/" + name + "/", "~/.cache/" + name + "/", "~/.local/share/" + name + "/",
		"~/.local/state/" + name + "/", "$XDG_CONFIG_HOME/" + name + "/",
		"$XDG_CACHE_HOME/" + name + "/", "$XDG_DATA_HOME/" + name + "/",
		"$XDG_STATE_HOME/" + name + "/",
	}
}

func claudeFinds() []string {
	return []string{"CLAUDE.md", "*/**/CLAUDE.md", ".claude/CLAUDE.md", "CLAUDE.local.md",
		"*/**/CLAUDE.local.md", ".claude/rules/**/*.md", ".claude/skills/*/SKILL.md",
		".claude/commands/**/*.md"}
}

// claudeHosts returns the hosts of its model, and of the tokens of an account.
func claudeHosts() []string { return []string{"api.anthropic.com", "platform.claude.com"} }

func claudeWrites() []string {
	return []string{"~/.claude/", "~/.claude.json", "$CLAUDE_CONFIG_DIR/"}
}

func claudeCommands() []string {
	return []string{"add-dir", "bashes", "branch", "btw", "bug", "continue", "copy",
		"cost", "diff", "export", "feedback", "fork", "hooks", "ide", "keybindings-help",
		"memory", "mobile", "name", "new", "output-style:new", "permissions", "plan",
		"plugin", "privacy-settings", "rate-limit-options", "release-notes", "remote",
		"remote-env", "restart", "resume", "review", "rewind", "sandbox", "session",
		"settings", "share", "skills", "stats", "status", "stickers", "teleport",
		"terminal-setup", "theme", "todos", "undo", "upgrade", "vim", "workflows"}
}
