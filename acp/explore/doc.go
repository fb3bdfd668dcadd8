// Package explore is a backend without a model: it answers prompts from the session's workspace,
// changes nothing there, and needs no network.
//
// A prompt that begins with a slash is a command:
//
//	/find GLOB                 files by name; "**" crosses directories
//	/search REGEXP             lines that match a Go regular expression
//	/read PATH[:FIRST-LAST]    a file or some of its lines
//	/instructions [PATH]       the instructions found in the roots, or those that apply to a path
//	/skills, /commands         the skills and commands found in the roots
//	/call SERVER.TOOL [JSON]   calls a tool
//	/help                      this list
//
// The adapter answers /roots and /mcp. Skills and commands found in the roots are also commands under their
// own names. Any other text is searched for: a line is found if it contains its words in this
// order, in any case.
//
// # Searching
//
// Package [github.com/acp-agent/acp-agent/workspace/tools] answers /find, /search, /read and free
// text, as it does for models. Searches visit every root, in the session's order, and leave out
// what git ignores, links and binary files. /read opens any path within the roots, ignored or not;
// a relative path starts at cwd.
//
// # Roots and MCP servers
//
// What [discovery.Catalog] found is shown with its root, its state, and the reason why it is not
// active. Text from roots and MCP servers is quoted and attributed to them; nothing here follows
// it. Each tool call asks. The commands are announced when a session opens and again when they have
// changed by the next prompt. Package acp/internal/commands sends the text and the tool calls of all
// answers.
//
// # What the client sees
//
// Each access to files is a tool call with its input, a summary and the locations. The answer is
// text that streams while files are read, grouped by root. Each chunk of it is whole Markdown.
// Locations are absolute paths as the client spells the roots; real paths are shown by /roots only.
// Answers are bounded and say when they were truncated. A cancelled turn ends between two files or
// within a few KiB of one.
package explore
