// Package client is an ACP client: it drives an agent over any pair of streams.
//
// It is what `acp-agent run`, the tests and the benchmarks talk through, and says what the
// protocol says without losing a bit of it: an absent list of roots is not an empty one, an update of
// a kind that nobody here knows arrives as it was sent.
//
//	c := client.New(p.Stdout(), p.Stdin(), client.Options{Updates: show, Permission: ask})
//	go c.Serve(ctx)
//	agent, err := c.Initialize(ctx)
//	s, err := c.NewSession(ctx, client.Setup{Roots: roots})
//	end, err := c.Prompt(ctx, s.ID, sdk.TextBlock("where is the parser?"))
//
// A method returns when the agent has answered, with a *wire.Error in the error's tree if it
// answered with one, and after everything that the agent sent before was handed to
// [Options]. When its context ends first, the agent is told by $/cancel_request and the answer is
// not waited for.
//
// What an agent did not advertise it is not asked for: the method returns an
// [*UnsupportedError] and sends nothing (clause P1). Roots are sent as [workspace.Roots], so
// they are absolute, without repetition, and without cwd (P2). Whoever wants to send
// something else uses [Client.Conn].
package client
