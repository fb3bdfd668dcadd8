// Package client is an ACP client: it drives an agent over a pair of streams.
//
// It preserves everything that the protocol can express: a missing list of roots differs from an
// empty one, and an update of an unknown kind arrives as it was sent.
//
//	c := client.New(p.Stdout(), p.Stdin(), client.Options{Updates: show, Permission: ask})
//	go c.Serve(ctx)
//	agent, err := c.Initialize(ctx)
//	s, err := c.NewSession(ctx, client.Setup{Roots: roots})
//	end, err := c.Prompt(ctx, s.ID, sdk.TextBlock("where is the parser?"))
//
// A method that sends a request returns when the agent has responded, after everything that the
// agent sent before was handed to the functions in [Options]. If the agent responded with an error,
// the error's tree contains an [*Error]. If the method's context ends first, the agent is sent
// $/cancel_request and the method returns without waiting.
//
// Methods whose capability the agent did not advertise fail without sending anything. Roots are
// sent as [workspace.Roots], so they are absolute and unique, and additional ones do not repeat
// cwd. [Client.Call] sends anything else.
package client
