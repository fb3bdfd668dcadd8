package discovery

import (
	"fmt"
	"path"
	"strings"
)

// Convention is a row of the table: where files of one format are. The zero Level is RootOnly.
type Convention struct {
	// Place is where the files are, slash-separated from the root's directory. "*", "?" and "[...]" stand
	// for parts of a name, and a "**" for any number of directories, which needs a fixed directory before
	// it. They do not stand for names that begin with a dot, nor for node_modules.
	Place string
	// Format says how the files are read.
	Format Format
	// Level says in which directories the place is looked for.
	Level Level
	// OneOnly: of the rows that say so, a directory has one artifact, that of the first row.
	OneOnly bool
}

// Level says in which directories a place is looked for.
type Level int

// The levels.
const (
	// RootOnly: in the root's own directory.
	RootOnly Level = iota
	// EveryDirectory: also in the directories below, once a path below them is touched ([Catalog.For]).
	EveryDirectory
)

// Format says how a file is read, and so what it makes.
type Format int

// The formats.
const (
	// Text is an instruction file of Markdown.
	Text Format = iota + 1
	// TextWithImports is Text whose @path words import files.
	TextWithImports
	// CopilotRule is an instruction file whose frontmatter says in applyTo what it is for.
	CopilotRule
	// ClaudeRule is an instruction file whose frontmatter says in paths what it is for.
	ClaudeRule
	// CursorRule is a .mdc file: description, globs and alwaysApply, by a reader that does not ask for YAML.
	CursorRule
	// SkillFile is the SKILL.md of an Agent Skill.
	SkillFile
	// CommandFile is a Markdown file whose path below the place is its name, as git:commit for git/commit.md.
	CommandFile
	// PromptFile is a NAME.prompt.md.
	PromptFile
	// MCPServers is JSON with the member mcpServers.
	MCPServers
	// VSCodeServers is JSON with comments and the member servers.
	VSCodeServers
)

// Kind is the kind of what files of the format make.
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

// Conventions is the table of the package comment, a new slice each time. Rows that a host puts before,
// between or after them rank accordingly.
func Conventions() []Convention {
	return []Convention{
		{Place: "AGENTS.md", Format: Text, Level: EveryDirectory, OneOnly: true},
		{Place: "CLAUDE.md", Format: TextWithImports, Level: EveryDirectory, OneOnly: true},
		{Place: ".claude/CLAUDE.md", Format: TextWithImports, Level: EveryDirectory, OneOnly: true},
		{Place: "GEMINI.md", Format: TextWithImports, Level: EveryDirectory, OneOnly: true},
		{Place: ".github/copilot-instructions.md", Format: Text},
		{Place: ".github/instructions/**/*.instructions.md", Format: CopilotRule},
		{Place: ".claude/rules/**/*.md", Format: ClaudeRule},
		{Place: ".cursor/rules/**/*.mdc", Format: CursorRule, Level: EveryDirectory},
		{Place: ".agents/skills/**/SKILL.md", Format: SkillFile},
		{Place: ".claude/skills/**/SKILL.md", Format: SkillFile},
		{Place: ".github/skills/**/SKILL.md", Format: SkillFile},
		{Place: "*/SKILL.md", Format: SkillFile},
		{Place: "SKILL.md", Format: SkillFile},
		{Place: ".claude/commands/**/*.md", Format: CommandFile},
		{Place: ".github/prompts/*.prompt.md", Format: PromptFile},
		{Place: ".mcp.json", Format: MCPServers},
		{Place: ".vscode/mcp.json", Format: VSCodeServers},
	}
}

// ConventionError: a row of the table that cannot be looked for.
type ConventionError struct {
	Place string
	// Why says what is wrong with it, in a person's words.
	Why string
}

func (e *ConventionError) Error() string {
	return fmt.Sprintf("the convention %q cannot be looked for: %s", e.Place, e.Why)
}

// row is a Convention that was checked.
type row struct {
	Convention
	rank  int
	names []string // of Place
	fixed int      // how many of names, from the first, are plain
}

// compile checks the table.
func compile(table []Convention) ([]row, error) {
	rows := make([]row, len(table))
	for i, c := range table {
		r := row{Convention: c, rank: i, names: strings.Split(c.Place, "/")}
		for r.fixed < len(r.names) && !isGlob(r.names[r.fixed]) {
			r.fixed++
		}
		if why := r.fault(); why != "" {
			return nil, &ConventionError{c.Place, why}
		}
		rows[i] = r
	}
	return rows, nil
}

// fault is what is wrong with the row, "" for nothing.
func (r row) fault() string {
	if r.Format < Text || r.Format > VSCodeServers {
		return "it has no format; give one of the constants of type Format"
	}
	for i, name := range r.names {
		switch _, err := path.Match(name, ""); {
		case name == "" || name == "." || name == "..":
			return "its names are separated by single slashes, and none is . or .."
		case strings.ContainsAny(name, "\\:\x00"):
			return "its names contain no backslash, colon or NUL"
		case err != nil:
			return fmt.Sprintf("%q is not a pattern", name)
		case name == "**" && (i == 0 || i == len(r.names)-1):
			return "** needs a directory before it, so that no root is walked, and a file after it"
		}
	}
	return ""
}

func isGlob(name string) bool { return strings.ContainsAny(name, "*?[") }
