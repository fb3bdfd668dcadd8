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
	// any number of directories; it needs a literal directory before it. They do not match node_modules and names that begin
	// with a dot.
	Pattern string
	// Format says how the files are read.
	Format Format
	// Level says in which directories to look for Pattern. The zero Level is RootOnly.
	Level Level
	// OnePerDirectory makes the first of the rows that have it set shadow the others in the same directory.
	OnePerDirectory bool
}

// Level says in which directories a convention's pattern applies.
type Level int

// The levels.
const (
	// RootOnly is the root's directory.
	RootOnly Level = iota
	// EveryDirectory includes the directories below, which [Catalog.For] scans for a path in them.
	EveryDirectory
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
	default:
		return Instruction
	}
}

// Conventions returns a new copy of the table in the package comment. To extend it, insert rows where they should rank.
func Conventions() []Convention {
	return []Convention{
		{Pattern: "AGENTS.md", Format: Text, Level: EveryDirectory, OnePerDirectory: true},
		{Pattern: "CLAUDE.md", Format: TextWithImports, Level: EveryDirectory, OnePerDirectory: true},
		{Pattern: ".claude/CLAUDE.md", Format: TextWithImports, Level: EveryDirectory, OnePerDirectory: true},
		{Pattern: "GEMINI.md", Format: TextWithImports, Level: EveryDirectory, OnePerDirectory: true},
		{Pattern: ".github/copilot-instructions.md", Format: Text},
		{Pattern: ".github/instructions/**/*.instructions.md", Format: CopilotRule},
		{Pattern: ".claude/rules/**/*.md", Format: ClaudeRule},
		{Pattern: ".cursor/rules/**/*.mdc", Format: CursorRule, Level: EveryDirectory},
		{Pattern: ".agents/skills/**/SKILL.md", Format: SkillFile},
		{Pattern: ".claude/skills/**/SKILL.md", Format: SkillFile},
		{Pattern: ".github/skills/**/SKILL.md", Format: SkillFile},
		{Pattern: "*/SKILL.md", Format: SkillFile},
		{Pattern: "SKILL.md", Format: SkillFile},
		{Pattern: ".claude/commands/**/*.md", Format: CommandFile},
		{Pattern: ".github/prompts/*.prompt.md", Format: PromptFile},
		{Pattern: ".mcp.json", Format: MCPServers},
		{Pattern: ".vscode/mcp.json", Format: VSCodeServers},
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
		r := row{Convention: c, rank: i, names: strings.Split(c.Pattern, "/")}
		for r.fixed < len(r.names) && !isGlob(r.names[r.fixed]) {
			r.fixed++
		}
		if err := r.check(); err != nil {
			return nil, fmt.Errorf("invalid convention %q: %w", c.Pattern, err)
		}
		rows[i] = r
	}
	return rows, nil
}

// check reports what is wrong with the row.
func (r row) check() error {
	if r.Format < Text || r.Format > VSCodeServers {
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
