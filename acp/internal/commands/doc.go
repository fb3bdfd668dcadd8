// Package commands answers slash commands without a model, for any backend.
//
// [MCP] answers /mcp, in sessions of the explorer and of every backend that does not answer /mcp
// itself. [Announce] adds /roots, /worktree and /mcp to the commands that a backend announces. What an answer
// looks like is decided here too, once for all commands: [Reply] sends text as whole Markdown and
// shows tool calls, [Root] is a root under the label that answers use for it.
//
// /roots itself is in package acp: it opens the session again, with other params. So is /worktree,
// which copies it.
//
// # Where to find things
//
//   - reply.go: text, quotations and tool calls of an answer, and the limits of its size
//   - result.go: what a tool or a resource of an MCP server returned
//   - roots.go, found.go: roots, and what discovery found in them
//   - mcp.go: /mcp; mcp_describe.go: how it describes servers and tools
//   - announce.go: the adapter's commands in the list that clients show
package commands
