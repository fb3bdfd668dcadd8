// Package discovery finds what the folders of a session contain for agents: instructions, skills, commands and the configuration
// of MCP servers.
//
//	catalog, err := discovery.Scan(ctx, ws, discovery.Options{})
//	for _, skill := range catalog.Active(discovery.Skill) { … }
//	text := catalog.Instructions(discovery.EveryRoot).String()
//
// One table says what to look for in every root. [Options].Conventions can extend it.
//
//	instruction  AGENTS.md, else CLAUDE.md (@path imports files),   one of them in each directory
//	             else .claude/CLAUDE.md, else GEMINI.md
//	             .github/copilot-instructions.md
//	             .github/instructions/**/*.instructions.md          for files that match applyTo
//	             .claude/rules/**/*.md                              for files that match paths
//	             .cursor/rules/**/*.mdc                             always, or for globs; in each directory
//	skill        .agents/skills/**/SKILL.md, .claude/skills/**/SKILL.md, .github/skills/**/SKILL.md
//	             */SKILL.md, SKILL.md                               a root that is a folder of skills, or one skill
//	command      .claude/commands/**/*.md, .github/prompts/*.prompt.md
//	mcp_server   .mcp.json (mcpServers), .vscode/mcp.json (servers)
//
// Nothing above a root is looked at. "In each directory" means that [Catalog.For] looks into the directories between a root and a
// path.
//
// Artifacts are ordered by root, then by the table, then by path. Of skills and commands with the same name the first is active,
// and of MCP servers with the same name. All instructions are active, except for alternatives in one directory. A file that is
// found twice is active once. A root inside another root keeps its own artifacts.
//
// Nothing is dropped: a [Catalog] contains what is shadowed or cannot be read, with the reason, and reports which limits were
// reached. Files that break a rule are used if possible, with a [Diagnostic].
//
// Files are read through the [workspace.Workspace], so links work inside the roots only. Scanning starts, runs and changes nothing.
// Found text is labelled with its root, and never presented as the user's or the system's.
//
// The package does not use [workspace.Workspace.Scan], which visits a whole tree in parallel. A root can hold hundreds of thousands
// of files, while the table names a few directories, most of them hidden; and links to skills and commands are followed here.
package discovery
