// Package conform checks whether an agent does what the Agent Client Protocol says, above all about
// sessions with several folders.
//
// checks.json has a row for each check. Most say what to send and what must come back; the others
// are functions of the same id in checks.go. [Run] carries them out:
//
//   - check.go: checks, and what they come to;
//   - run.go: the processes of the agent, and the sessions that the checks share;
//   - agent.go: one process, which is started as an editor would;
//   - probe.go: a row that says what to send;
//   - transcript.go: checks of everything that the agent has sent;
//   - client.go: the checks of an editor, which [ServeClient] is the agent of;
//   - report.go: what came out, as text, JSON and JUnit.
//
// Package rawrpc exchanges the lines, and package schema validates them.
package conform
