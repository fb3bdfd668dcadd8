// Package turns decides in which order the requests of a session are served, when the turn of a
// prompt begins and ends, and which clients are shown the session and asked.
//
// It knows neither sessions nor clients, only what it needs of them. Package acp has both:
//
//   - queue.go and ticket.go: the [Queues] of a user, a [Queue] for each session id, and a [Ticket]
//     for each request, of all connections. S is the type of the active sessions, and C that of the
//     clients that send requests. They are only stored and compared.
//   - turn.go: a [Turn] is a prompt from its arrival to its response. A [Session] gives the backend
//     the prompt, and tells it when the turn ends early.
//   - viewers.go: the [Viewers] of a session are the [Client]s that have it open.
//   - poll.go: a [Poll] asks a question in all of them, until one answers.
//
// # Locks
//
// Queues.mu comes before Turn.mu. Viewers.mu is taken alone, or while a message is sent to one
// viewer (viewer.sending). All are held for a few statements; nothing of another package is called
// meanwhile, except the end of a context, Client.HasLeft, Client.Room and ViewerOptions.Go.
package turns
