// Package mcprelay stands between an agent and a stdio MCP server that it starts, and answers the server's
// questions for the roots in the agent's place. An agent behind acp-agent has its own idea of the roots, one directory or
// none; through the relay its servers see the session's, in order (clauses M1, M7).
//
// [Run] is the relay, a process of its own: acp-agent mcp-relay. What passes unaltered, and what does not, is in
// docs/mcp.md. [Publisher] is the session's side: relays connect to it and hear of the roots, now and when they change.
//
//	p, err := mcprelay.Listen(dir, mcprelay.PublisherOptions{Logger: log})
//	p.Set(roots)                       // at the session's start, and with each change
//	c := p.Wrap(relay, server)         // start c where server would be started
//	…
//	err = p.Close()                    // the session has ended
//
// Each session has a publisher, with a socket and a secret of its own, so that no relay hears of another session's
// roots (A22). Nothing that a relay sends changes them (A24).
package mcprelay
