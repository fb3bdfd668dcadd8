package setup

import (
	"cmp"
	"strings"

	"github.com/go-json-experiment/json"
)

// An editor is a program that acp-agent can be added to.
type editor struct {
	name  string // for --editor
	title string // as in docs/editors.md
	file  string // where the snippet belongs; "" if it is not known
	// files are other such files, by operating system.
	files map[string]string
	// names are the editor's names for known agents, nil if the user chooses the name.
	names map[string]string
	// snippet is what the user adds. <name> stands for the editor's name for the agent, <program>
	// for the quoted path of acp-agent, <args> for its quoted arguments and <line> for both.
	snippet string
	between string // the arguments; default ", "
	needs   string // the versions that it needs, "" for any
	roots   string // what the user types for the command /roots, if that is something else
	// sendsFolders means that sessions always have the folders that the editor shows.
	sendsFolders bool
}

// editors returns the editors that docs/editors.md describes, with the same snippets, and at the
// end one that stands for all others.
func editors() []editor {
	return []editor{
		{
			name: "zed", title: "Zed", file: "~/.config/zed/settings.json", sendsFolders: true,
			files: map[string]string{"windows": `%AppData%\Zed\settings.json`},
			snippet: `{
  "agent_servers": {
    "<name>": { "type": "custom", "command": <program>, "args": [<args>] }
  }
}
`,
		},
		{
			name: "jetbrains", title: "JetBrains IDEs", file: "~/.jetbrains/acp.json",
			snippet: `{
  "agent_servers": {
    "<name>": { "command": <program>, "args": [<args>] }
  }
}
`,
		},
		{
			name: "vscode", title: "VS Code (ACP Client)", file: "~/.config/Code/User/settings.json",
			files: map[string]string{
				"darwin":  "~/Library/Application Support/Code/User/settings.json",
				"windows": `%AppData%\Code\User\settings.json`,
			},
			snippet: `{
  "acp.agents": {
    "<name>": { "command": <program>, "args": [<args>] }
  }
}
`,
		},
		{
			name: "codecompanion", title: "Neovim (CodeCompanion)", file: "init.lua", roots: `\roots`,
			names: map[string]string{"opencode": "opencode", "gemini": "gemini_cli",
				"codex": "codex", "claude": "claude_code", "copilot": "copilot_acp",
				"cline": "cline_cli", "goose": "goose"},
			snippet: `require("codecompanion").setup({
  adapters = {
    acp = {
      <name> = function()
        return require("codecompanion.adapters").extend("<name>", {
          commands = { default = { <line> } },
        })
      end,
    },
  },
})
`,
		},
		{
			name: "agentic", title: "Neovim (agentic.nvim)", file: "init.lua",
			names: map[string]string{"opencode": "opencode-acp", "gemini": "gemini-acp",
				"codex": "codex-acp", "claude": "claude-agent-acp", "copilot": "copilot-acp",
				"cline": "cline-acp", "goose": "goose-acp"},
			snippet: `require("agentic").setup({
  provider = "<name>",
  acp_providers = {
    ["<name>"] = { command = <program>, args = { <args> } },
  },
})
`,
		},
		{
			name: "avante", title: "Neovim (avante)", file: "init.lua",
			names: map[string]string{"opencode": "opencode", "gemini": "gemini-cli",
				"claude": "claude-code", "codex": "codex"},
			snippet: `require("avante").setup({
  provider = "<name>",
  acp_providers = {
    ["<name>"] = {
      command = <program>, args = { <args> },
      env = { HOME = os.getenv("HOME") },
    },
  },
})
`,
		},
		{
			name: "emacs", title: "Emacs (agent-shell)", file: "init.el", between: " ",
			names: map[string]string{"opencode": "agent-shell-opencode-acp-command",
				"gemini":  "agent-shell-google-gemini-acp-command",
				"claude":  "agent-shell-anthropic-claude-acp-command",
				"codex":   "agent-shell-openai-codex-acp-command",
				"copilot": "agent-shell-github-acp-command",
				"goose":   "agent-shell-goose-acp-command"},
			snippet: `(setq <name> '(<line>))
`,
		},
		{
			name: "acpx", title: "acpx", file: "~/.acpx/config.json",
			needs: "acpx 0.19 or newer, with Node 22.13 or newer",
			snippet: `{ "agents": { "<name>": { "argv": [<line>] } } }
`,
		},
		{
			name: "other", title: "Another editor",
			snippet: `{ "command": <program>, "args": [<args>] }
`,
		},
	}
}

// defaultName is the name of an agent that a plugin knows. It is used for agents that the plugin
// does not know.
const defaultName = "opencode"

// nameOf returns the editor's name for an agent, or "" if the editor does not know the agent.
func (e editor) nameOf(agent string) string {
	if e.names == nil {
		return "acp-agent"
	}
	return cmp.Or(e.names[agent], e.names[defaultName])
}

// path returns where the snippet belongs on an operating system, "" if that is not known.
func (e editor) path(system string) string { return cmp.Or(e.files[system], e.file) }

// render returns the snippet.
func (e editor) render(name, program string, args []string) string {
	between := cmp.Or(e.between, ", ")
	words := make([]string, len(args)+1)
	for i, word := range append([]string{program}, args...) {
		quoted, _ := json.Marshal(word) // which is also valid in Lua and Lisp
		words[i] = string(quoted)
	}
	return strings.NewReplacer("<name>", name, "<program>", words[0],
		"<args>", strings.Join(words[1:], between),
		"<line>", strings.Join(words, between)).Replace(e.snippet)
}
