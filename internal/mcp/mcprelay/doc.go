// Package mcprelay implements a process between an agent and a stdio MCP server that the agent
// starts. It answers the server's requests for roots instead of the agent. An agent behind
// acp-agent has its own idea of the roots, one directory or none; through the relay its servers see
// the session's roots, in order.
//
// [Run] is the relay, which is a separate process: acp-agent mcp-relay. [Publisher] is the
// session's side: relays connect to it and receive the roots, now and when they change.
//
//	p, err := mcprelay.Listen(dir, log)
//	p.Set(roots)                    // at the session's start, and on each change
//	c := p.Wrap(relay, server)      // start c instead of server
//	err = p.Close()                 // at the session's end
//
// [SessionRoots] is for our own server, acp-agent mcp. It reads the roots from the publisher for
// each tool call, and so never uses roots that the session no longer has.
//
// Each session has its own publisher, socket and secret, so that a relay learns no other session's
// roots. Nothing that a relay sends changes them.
//
// A relay without a publisher, because there is none or the session has ended, passes all messages
// through unchanged. With a publisher, it changes only messages about roots, and refuses calls that
// the session's rules are about; see docs/internals/mcp.md.
package mcprelay
