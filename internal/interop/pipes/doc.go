// Package pipes starts an agent as a process and speaks to it line by line: what a
// client does, without a client's manners. Lines go out as they are given, several in
// one write if need be, and every line of both sides is kept in order.
//
//	p, err := pipes.Start(pipes.Options{Command: []string{"acp-agent", "--state-dir", dir}})
//	m, err := p.Call(ctx, "initialize", map[string]any{"protocolVersion": 1})
//	…
//	p.CloseInput()
//	code, err := p.Wait(ctx)
//
// It uses nothing of the agent's own code, so a mistake there is not repeated here.
package pipes
