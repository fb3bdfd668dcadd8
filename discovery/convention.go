package discovery

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
)

// Convention is a row of the table: it says where files of one format are.
type Convention struct {
	// Pattern is the path of the files, slash-separated from the root. "*", "?" and "[...]" match
	// parts of a name. "**" matches any number of directories, and needs another directory before
	// it. Wildcards do not match directories of dependencies, such as node_modules, or the dot at
	// the beginning of a name. A pattern that begins with ".*" leaves out hidden directories that
	// another row names.
	Pattern string
	// Format says how the files are read.
	Format Format
	// Level says in which directories to look for Pattern. The zero Level is RootOnly.
	Level Level
	// OnePerDirectory makes a row shadow later rows with OnePerDirectory in the same directory.
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
	// EachPlugin is the directory of each plugin in the root. The names of its skills and commands
	// begin with the plugin's name: plugin:name.
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
	// Rule is an instruction file whose frontmatter says what it applies to, in the keys of any
	// tool. Without them it always applies.
	Rule
	// AnchoredRule is a Rule in whose globs a name without a slash means a file beside the
	// directory of the rules, not in any directory.
	AnchoredRule
	// CopilotRule is an AnchoredRule that does not apply without such keys.
	CopilotRule
	// Microagent is a Rule of OpenHands, which reads no README.md.
	Microagent
	// RooModeRule is an instruction file for one mode of Roo Code, which its path names.
	RooModeRule
	// CursorRule is a .mdc file, a Rule that does not apply without such keys, which are not
	// required to be YAML.
	CursorRule
	// SkillFile is the SKILL.md of an Agent Skill.
	SkillFile
	// CommandFile is a Markdown file whose path below the pattern's directory is its name:
	// git:commit for git/commit.md.
	CommandFile
	// PromptFile is a NAME.prompt.md.
	PromptFile
	// GeminiCommand is TOML with the keys prompt and description. Its path below the pattern's
	// directory is its name.
	GeminiCommand
	// MCPServers is JSON with the member mcpServers.
	MCPServers
	// VSCodeServers is JSON with comments and the member servers.
	VSCodeServers
	// GeminiSettings is JSON with comments that may have the members mcpServers and mcp.
	GeminiSettings
	// OpencodeSettings is JSON with comments that may have the member mcp.
	OpencodeSettings
	// CodexSettings is TOML that may have the table mcp_servers.
	CodexSettings
	// CrushSettings is JSON with comments that may have the member mcp, with servers as in MCPServers.
	CrushSettings
	// AmpSettings is JSON with comments that may have the member amp.mcpServers.
	AmpSettings
	// ZedSettings is JSON with comments that may have the member context_servers.
	ZedSettings
	// VibeSettings is TOML that may have the array of tables mcp_servers.
	VibeSettings
	// ContinueServers is YAML with the list mcpServers.
	ContinueServers
	// PluginMarketplace is a marketplace.json, which lists plugins and where they are.
	PluginMarketplace
	// PluginManifest is the plugin.json of a plugin. The plugin is the parent of the manifest's
	// directory.
	PluginManifest
)

// kind returns the kind of the artifacts in files of the format.
func (f Format) kind() Kind {
	switch f {
	case SkillFile:
		return Skill
	case CommandFile, PromptFile, GeminiCommand:
		return Command
	case MCPServers, VSCodeServers, GeminiSettings, OpencodeSettings, CodexSettings, CrushSettings,
		AmpSettings, ZedSettings, VibeSettings, ContinueServers:
		return MCPServer
	case PluginMarketplace, PluginManifest:
		return Plugin
	default:
		return Instruction
	}
}

// row is a Convention that was checked.
type row struct {
	Convention
	rank   int
	names  []string // of Pattern
	fixed  int      // how many of names, from the first, are literal
	orDir  bool     // other rows look into a directory of this name
	hidden bool     // the first of names was found by a glob
}

// standardRows returns the rows of [Conventions]. Callers must not change them.
var standardRows = sync.OnceValues(func() ([]row, error) { return compile(Conventions()) })

// compile checks the table.
func compile(table []Convention) ([]row, error) {
	rows := make([]row, len(table))
	for i, c := range table {
		var err error
		if rows[i], err = compileRow(c, i); err != nil {
			return nil, fmt.Errorf("invalid convention %q: %w", c.Pattern, err)
		}
		rows[i].orDir = slices.ContainsFunc(table,
			func(other Convention) bool { return strings.HasPrefix(other.Pattern, c.Pattern+"/") })
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
	if r.Format < Text || r.Format > PluginManifest {
		return errors.New("it has no format: use one of the constants of type Format")
	}
	for i, name := range r.names {
		switch _, err := path.Match(name, ""); {
		case name == "" || name == "." || name == "..":
			return errors.New(`a single slash must separate names, and no name can be "." or ".."`)
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
