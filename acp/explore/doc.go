// Package explore is the runtime that is built in: it answers prompts from the session's
// workspace, and needs no model and no network.
//
// A prompt that begins with a slash is a command:
//
//	/roots                     the session's roots and MCP servers, and the state of each
//	/find GLOB                 files by name; "**" crosses directories
//	/search REGEXP             lines that match a Go regular expression
//	/read PATH[:FIRST-LAST]    a file, or some of its lines
//	/write PATH                a file, whose content is on the lines below
//	/edit PATH                 lines of a file, given on the lines below
//	/instructions [PATH]       what the roots' instruction files say, with those on the way to a path
//	/skills, /commands         the skills and commands that the roots hold
//	/skill NAME [ARGUMENTS]    what a skill says
//	/mcp                       the MCP servers, and those that the roots name
//	/mcp tools                 what the servers offer
//	/mcp start NAME            starts a server that a root names
//	/call SERVER.TOOL [JSON]   calls a tool
//	/help                      this list
//
// Skills and commands of the roots, and prompts of MCP servers, are commands by their own names too.
//
// Any other text is taken as words. A line is found if it has all of them, in any
// order and case, also inside longer words. If no line anywhere has them all, those are shown that have
// the most.
//
// # What is looked at
//
// /find, /search and words go through every root, in the session's order (clause A20): the
// files of a directory before its subdirectories, both sorted. They leave out what git
// ignores (the .gitignore files within a root, and .git/info/exclude), .git itself,
// links, and, when they read, binary files: those with a NUL in the first 8 KiB, and those with a hit that
// are not UTF-8. A file that several roots reach, because one lies in another, is shown once, for
// the first root in order whose rules do not ignore it. /read opens whatever path it is given,
// ignored or not, through links or not, as long as it is in scope (A23); a relative path starts at
// cwd and nowhere else.
//
// # What is changed
//
// /write makes the text below its line the content of a file, with a line end at its end. /edit replaces
// whole lines, which must be in the file exactly once, just as they are given:
//
//	/edit src/main.go
//	<<<<<<< old
//		return nil
//	=======
//		return err
//	>>>>>>> new
//
// The labels may be left out. Where the text itself has such lines, the three markers are made longer, all
// by the same length. Line ends are those of the file.
//
// Nothing is written unless the client's user allows it, each time anew (A30): the question shows where the
// path really leads, the root that owns it, and the difference. After the answer the path must lead there
// still and the file be as it was shown, or nothing is written (C11). Then the file is
// replaced as a whole. A path out of scope is refused without a question, and so are what is
// not text and what is larger than [Options] say. Directories are not made.
//
// # What the roots hold, and MCP servers
//
// What the host's [discovery.Catalog] found is shown with its root, its state, and why it does not count if it does
// not. The texts of roots and of MCP servers are quoted, and said to be theirs: never the user's or the system's word
// (A30). There is no model here that could follow them. Being found starts nothing (A25): a server that a root names is
// started by /mcp start alone, for which the host asks the user, and each call of a tool is asked for too. The
// commands are announced when a session opens, and anew when they have changed by the next prompt. No server is
// started to announce its prompts.
//
// All of it goes through the session's [workspace.Workspace], most of it by the parts of package
// [tools], which a model's tools are made of too; this package opens nothing by itself.
//
// # What the client sees
//
// Each look at the files is a tool call: in progress with its input, then completed or
// failed with a summary and the locations. That of a change is pending until it is allowed, and ends
// with the difference. The answer is text that streams while files are being
// read, grouped by root under the root's folder name. Locations are absolute paths in the client's
// own spelling; real paths are for /roots. Every answer is bounded by [Options] and says
// when it was cut. A cancelled turn ends between two files or within a few KiB of one.
package explore
