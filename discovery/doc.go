// Package discovery finds what the folders of a session contain for agents: instructions, skills,
// commands and the configuration of MCP servers.
//
//	catalog, err := discovery.Scan(ctx, ws)
//	for _, skill := range catalog.Active(discovery.Skill) { … }
//	text := catalog.Instructions(nil).String()
//
// One table, conventions.txt, says what to look for in every root; docs/discovery.md shows it.
//
// Nothing above a root is read. Some conventions also apply to the directories between a root and a
// path; [Catalog.For] reads them. A manifest or a marketplace at the top of a root names plugins.
//
// Artifacts are ordered by root, then by the table, then by path. If several skills or commands
// have the same name, the first is active; the same holds for MCP servers. All instructions are
// active, except that only one of several alternatives in a directory is. A file that is found
// twice is active once. A root inside another root keeps its own artifacts.
//
// Nothing is dropped: a [Catalog] also contains artifacts that are shadowed or cannot be read, with
// the reason, and reports which limits were reached. Files that break a rule are used if possible,
// with a diagnostic.
//
// Files are read through the [workspace.Workspace], so links work inside the roots only. Scanning
// starts, runs and changes nothing. Found text is labelled with its root, and never presented as
// the user's or the system's. The scan goes from directory handle to directory handle, which takes
// less than half the time of opening the same files by path through [workspace.Workspace.Fs].
//
// The package does not use [workspace.Workspace.Walk], which visits a whole tree in parallel. A
// root can hold hundreds of thousands of files, while the table names a few directories, most of
// them hidden; and this package follows links to skills and commands.
package discovery
