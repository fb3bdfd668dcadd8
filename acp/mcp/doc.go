// Package mcp has the types that describe the MCP servers of a session: what they offer, how they
// are, and what they may do.
//
// A backend gets a [Status] of each server and a [Listing] of its tools from backend.Tools, a host
// program returns a [Policy] for each name from acp.Options.MCPPolicy, and the package inside this
// module that starts the servers fills in the former and follows the latter.
package mcp
