// Package discovery finds what a session's folders hold for agents: instructions, skills, commands and the configuration of
// MCP servers. It treats every root alike, earlier roots first (clause A25).
//
//	catalog, err := discovery.Scan(ctx, ws, discovery.Options{})
//	for _, skill := range catalog.Active(discovery.Skill) { … }
//	text := catalog.Instructions(discovery.EveryRoot).String()
//
// One table says what is looked for, in every root. A host extends it by [Options].Conventions.
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
// A root is the ceiling: nothing above it is looked at. "In each directory" means that the directories below a root are
// looked at once somebody works there ([Catalog.For]); no root is walked.
//
// Artifacts rank by the index of their root, then by the table from the top, then by their path. Of skills and commands
// with one name the first counts, and of MCP servers with one name; instructions all count, but one of a directory. A file
// that is found in two ways counts once. A root inside another root owns what is in its own conventional places.
//
// Nothing is dropped: what does not count, or cannot be read, is in the [Catalog] with its reason, and what a
// bound cut is in [Catalog.Cuts], or below a root in the list of [Catalog.For]. Files that break a rule are used if
// they can be, and the rule is named.
//
// Reading goes through the [workspace.Workspace] alone, so links work inside the roots and nowhere else.
// Finding starts, runs and trusts nothing, and changes no root (A24). Text that was found is labelled with
// its root, and never as the user's or the system's word (A30).
package discovery
