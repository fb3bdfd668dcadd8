// Package turns decides who may do what when: in which order the requests of a session are served,
// when a prompt's turn begins and ends, and which client is shown the session.
//
// It knows neither sessions nor clients, only what it needs of them. Package acp has both:
//
//   - queue.go: the [Queues] of a connection, a [Queue] for each session id, and a [Ticket] for
//     each request. S is the type of the active sessions. They are only stored and compared.
//   - turn.go: a [Turn] is a prompt from its arrival to its response. A [Session] gives the backend
//     the prompt, and tells it when the turn ends early.
//   - outlet.go: an [Outlet] leads to the [Client] that has the session open.
//
// # Locks
//
// Queues.mu comes before Queue.mu, and that before Turn.mu. Outlet.mu is taken alone. All are held
// for a few statements; nothing of another package is called meanwhile, except the end of a context
// and Client.HasLeft.
package turns
