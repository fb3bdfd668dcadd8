// Package process runs child processes that speak a protocol over their standard streams, such as
// agents and MCP servers.
//
// The caller owns a child's stdin and stdout. Its stderr is logged line by line under the child's
// name, and a slow logger never blocks the child. The child runs in its own process group, so that
// the processes it starts end with it:
//
//	p, err := process.Start(ctx, process.Command{Path: "opencode", Args: []string{"acp"}}, process.Options{Logger: log})
//	…                       // p.Stdin(), p.Stdout()
//	err = p.Stop(ctx)       // close stdin, wait, SIGTERM, wait, SIGKILL, wait
//
// # When processes end
//
//   - [Process.Stop] ends the group step by step, with a grace period before each.
//   - When the child ends by itself, the rest of its group is sent SIGTERM and then SIGKILL. Only after that is
//     [Process.Done] closed.
//   - When our process is killed, the child's stdin is closed, and on Linux the kernel also kills the child. A grandchild
//     that ignores the end of its input lives on. So does a process that left the group with setsid, in any case.
//   - On Windows the group is a job object, which ends with our process. A process that the child starts before it has been
//     assigned to the job escapes.
package process
