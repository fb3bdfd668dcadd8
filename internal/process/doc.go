// Package process starts child processes. Every child of the program is started by the function
// start in start.go, such as the agent behind the proxy, an MCP server, a command of a model, or
// one that prints a key.
//
// [Start] runs a child that speaks a protocol over its standard streams. The caller owns its stdin
// and stdout. Its stderr is logged line by line under the child's name, and a slow logger never
// blocks the child. On Unix systems the child has no terminal. It runs in its own process group, so
// that the processes it starts end with it:
//
//	c := process.Command{Path: "opencode", Args: []string{"acp"}}
//	p, err := process.Start(ctx, c, process.Options{Logger: log})
//	…                       // p.Stdin(), p.Stdout()
//	err = p.Stop(ctx)       // close stdin, wait, SIGTERM, wait, SIGKILL, wait
//
// A [Command] with Batch has no input to close.
//
// [Output] runs a short command and returns what it prints. [RunInTerminal] runs one that talks to
// the user. Each of them restricts a command that has a [Command].Sandbox, which package confine
// makes.
//
// # When processes end
//
//   - [Process.Stop] ends the group step by step, with a grace period before each.
//   - When the child ends by itself, the rest of its group is sent SIGTERM and then SIGKILL. Only
//     after that is [Process.Done] closed.
//   - On Linux the descendants that left the group, by setsid or as a daemon, end in the same way.
//     They are recognized by a variable in their environment. One that has removed it lives on.
//   - When our process is killed, the child's stdin is closed, and on Linux the kernel also kills
//     its group. Processes that left the group live on.
//   - On other Unix systems, processes that left the group always live on, and a group that ignores
//     the end of its input lives on when our process is killed.
//   - On Windows the group is a job object, which ends with our process. A process that the child
//     starts before it has been assigned to the job escapes.
package process
