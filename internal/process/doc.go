// Package child runs child processes that speak over their standard streams: agents
// behind us and MCP servers.
//
// A child's stdin and stdout belong to the caller. Its stderr goes line by line to a logger,
// under the child's name, and never makes the child wait. It runs in a process group
// of its own, so that what it started ends with it:
//
//	p, err := child.Start(ctx, child.Command{Path: "opencode", Args: []string{"acp"}}, child.Options{Logger: log})
//	…                       // p.Stdin(), p.Stdout()
//	err = p.Stop(ctx)       // close stdin, wait, SIGTERM, wait, SIGKILL, wait
//
// # What ends when (clause W9)
//
//   - [Process.Stop] ends the group step by step, each after a grace.
//   - When the direct child ends by itself, what is left of its group is sent SIGTERM and
//     then SIGKILL. Only after that is [Process.Done] closed.
//   - When our process is killed, the child sees its stdin close. On Linux the kernel
//     kills the direct child besides. A grandchild that ignores the end of its input lives on,
//     as does at any time a process that left the group (setsid).
//   - On Windows the group is a job object, which ends with our process. A process that
//     the child starts in its very first moments, before it is put into the job, escapes.
package process
