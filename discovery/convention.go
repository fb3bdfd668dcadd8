package discovery

import (
	"errors"
	"fmt"
	"path"
	"strings"
)

// Convention is a row of the table: it says where files of one format are.
type Convention struct {
	// Pattern is the path of the files, slash-separated from the root. "*", "?" and "[...]" match parts of a name, and "**"
	// any number of directories; it needs a literal directory before it. They do not match node_modules, and match names that
	// begin with a dot only after a dot.
	Pattern string
	// Format says how the files are read.
	Format Format
	// Level says in which directories to look for Pattern. The zero Level is RootOnly.
	Level Level
	// OnePerDirectory makes the first of the rows that have it set shadow the others in the same directory.
	OnePerDirectory bool
	// Source is the product or specification that defines the convention.
	Source string
}

// Level says in which directories a convention's pattern applies.
type Level int

// The levels.
const (
	// RootOnly is the root's directory.
	RootOnly Level = iota
	// EveryDirectory includes the directories below, which [Catalog.For] scans for a path in them.
	EveryDirectory
	// EachPlugin is the directory of each plugin in the root. Skills and commands have the plugin's name before theirs:
	// plugin:name.
	EachPlugin
)

// Format is the format of a file, which determines the kind of its artifacts.
type Format int

// The formats.
const (
	// Text is a Markdown file with instructions.
	Text Format = iota + 1
	// TextWithImports is Text in which words such as @path import files.
	TextWithImports
	// CopilotRule is an instruction file whose frontmatter has the key applyTo.
	CopilotRule
	// ClaudeRule is an instruction file whose frontmatter has the key paths.
	ClaudeRule
	// CursorRule is a .mdc file with the keys description, globs and alwaysApply, which are not required to be YAML.
	CursorRule
	// SkillFile is the SKILL.md of an Agent Skill.
	SkillFile
	// CommandFile is a Markdown file whose path below the pattern's directory is its name: git:commit for git/commit.md.
	CommandFile
	// PromptFile is a NAME.prompt.md.
	PromptFile
	// MCPServers is JSON with the member mcpServers.
	MCPServers
	// VSCodeServers is JSON with comments and the member servers.
	VSCodeServers
	// PluginMarketplace is a marketplace.json, which lists plugins and where they are.
	PluginMarketplace
	// PluginManifest is the plugin.json of a plugin, which is the directory that contains the manifest's.
	PluginManifest
	// SubagentFile defines a subagent, which is listed and not used. It is not read.
	SubagentFile
	// HookFile is JSON whose member hooks has programs that run on certain events. It is listed and not used.
	HookFile
)

// Kind returns the kind of the artifacts in files of the format.
func (f Format) Kind() Kind {
	switch f {
	case SkillFile:
		return Skill
	case CommandFile, PromptFile:
		return Command
	case MCPServers, VSCodeServers:
		return MCPServer
	case PluginMarketplace, PluginManifest:
		return Plugin
	case SubagentFile:
		return Subagent
	case HookFile:
		return Hook
	default:
		return Instruction
	}
}

// Conventions returns a new copy of the table. To extend it, insert rows where they should rank.
func Conventions() []Convention {
	const (
		agentsMD   = "agents.md"
		claudeCode = "Claude Code"
		copilot    = "GitHub Copilot"
		skillsSpec = "agentskills.io"
	)
	return []Convention{
		{Pattern: "AGENTS.md", Format: Text, Level: EveryDirectory, OnePerDirectory: true, Source: agentsMD},
		{Pattern: "CLAUDE.md", Format: TextWithImports, Level: EveryDirectory, OnePerDirectory: true, Source: claudeCode},
		{Pattern: ".claude/CLAUDE.md", Format: TextWithImports, Level: EveryDirectory, OnePerDirectory: true, Source: claudeCode},
		{Pattern: "GEMINI.md", Format: TextWithImports, Level: EveryDirectory, OnePerDirectory: true, Source: "Gemini CLI"},
		{Pattern: ".github/copilot-instructions.md", Format: Text, Source: copilot},
		{Pattern: ".github/instructions/**/*.instructions.md", Format: CopilotRule, Source: copilot},
		{Pattern: ".claude/rules/**/*.md", Format: ClaudeRule, Source: claudeCode},
		{Pattern: ".cursor/rules/**/*.mdc", Format: CursorRule, Level: EveryDirectory, Source: "Cursor"},

		{Pattern: ".agents/skills/**/SKILL.md", Format: SkillFile, Source: skillsSpec},
		{Pattern: ".claude/skills/**/SKILL.md", Format: SkillFile, Source: claudeCode},
		{Pattern: ".github/skills/**/SKILL.md", Format: SkillFile, Source: copilot},
		{Pattern: ".claude-plugin/marketplace.json", Format: PluginMarketplace, Source: claudeCode},
		{Pattern: ".claude-plugin/plugin.json", Format: PluginManifest, Source: claudeCode},
		{Pattern: "skills/*/SKILL.md", Format: SkillFile, Level: EachPlugin, Source: claudeCode},
		{Pattern: "skills/*/SKILL.md", Format: SkillFile, Source: "anthropics/skills"},
		{Pattern: "skills/*/*/SKILL.md", Format: SkillFile, Source: "openai/skills"},
		{Pattern: "skills/.*/*/SKILL.md", Format: SkillFile, Source: "openai/skills"},
		{Pattern: "*/SKILL.md", Format: SkillFile, Source: skillsSpec},
		{Pattern: "SKILL.md", Format: SkillFile, Source: skillsSpec},

		{Pattern: ".claude/commands/**/*.md", Format: CommandFile, Source: claudeCode},
		{Pattern: ".github/prompts/*.prompt.md", Format: PromptFile, Source: copilot},
		{Pattern: "commands/**/*.md", Format: CommandFile, Level: EachPlugin, Source: claudeCode},

		{Pattern: ".mcp.json", Format: MCPServers, Source: claudeCode},
		{Pattern: ".vscode/mcp.json", Format: VSCodeServers, Source: "Visual Studio Code"},

		{Pattern: ".claude/agents/**/*.md", Format: SubagentFile, Source: claudeCode},
		{Pattern: "agents/**/*.md", Format: SubagentFile, Level: EachPlugin, Source: claudeCode},
		{Pattern: ".claude/settings.json", Format: HookFile, Source: claudeCode},
		{Pattern: "hooks/hooks.json", Format: HookFile, Level: EachPlugin, Source: claudeCode},
	}
}

// row is a Convention that was checked.
type row struct {
	Convention
	rank  int
	names []string // of Pattern
	fixed int      // how many of names, from the first, are literal
}

// compile checks the table.
func compile(table []Convention) ([]row, error) {
	rows := make([]row, len(table))
	for i, c := range table {
		var err error
		if rows[i], err = compileRow(c, i); err != nil {
			return nil, fmt.Errorf("invalid convention %q: %w", c.Pattern, err)
		}
	}
	return rows, nil
}

func compileRow(c Convention, rank int) (row, error) {
	r := row{Convention: c, rank: rank, names: strings.Split(c.Pattern, "/")}
	for r.fixed < len(r.names) && !isGlob(r.names[r.fixed]) {
		r.fixed++
	}
	return r, r.check()
}

// check reports what is wrong with the row.
func (r row) check() error {
	if r.Format < Text || r.Format > HookFile {
		return errors.New("it has no format: use one of the constants of type Format")
	}
	for i, name := range r.names {
		switch _, err := path.Match(name, ""); {
		case name == "" || name == "." || name == "..":
			return errors.New("names must be separated by single slashes, and must not be \".\" or \"..\"")
		case strings.ContainsAny(name, "\\:\x00"):
			return errors.New("names must not contain a backslash, colon or NUL")
		case err != nil:
			return fmt.Errorf("%q is not a valid pattern", name)
		case name == "**" && (i == 0 || i == len(r.names)-1):
			return errors.New("** must have a literal directory before it and a name after it")
		}
	}
	return nil
}

func isGlob(name string) bool { return strings.ContainsAny(name, "*?[") }
