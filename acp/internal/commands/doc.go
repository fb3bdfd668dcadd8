// Package commands answers slash commands without a model, for any backend.
//
// [MCP] answers /mcp. [Announce] adds the adapter's commands to those that a backend announces.
// What an answer looks like is decided here too, once for all commands: [Reply] sends text as whole
// Markdown and shows tool calls, [Root] is a root under the label that answers use for it.
//
// The commands that need more of a session than its host are in package acp: /roots opens it again
// with other params, /worktree and /fork copy it.
package commands
