// Package backend defines what answers the prompts of an ACP agent.
//
// The adapter, package acp, speaks the protocol: it validates requests, opens workspaces, stores
// sessions and histories, keeps requests in order, cancels turns, and checks what is sent to the
// client. A [Backend] does the rest: package acp/explore without a model, acp/model with one,
// acp/proxy with another ACP agent, or a host program with its own agent.
//
// Two rules hold for all backends.
//
// Messages are raw JSON, so that members and kinds unknown to this module pass through unchanged.
// The exception is the session id: params and updates are passed without their member sessionId,
// which the adapter removes from what it receives and adds to what it sends. A backend never sees
// the client's session ids and may use its own.
//
// Calls that carry a client's message come in two halves. The call itself is made in arrival order
// and must not block: it decides, takes notes or queues a message to another process. The [Work]
// that it returns runs on another goroutine and may take its time. [Backend.Initialize],
// [Backend.Open] and the Close methods are not split: they run on the goroutine of their request
// and may block until their context ends.
//
// # Life of a session
//
//	Open ──ok──▶ stored ──▶ Prompt, Call, Notify … ──▶ Close
//	  │            │
//	  └─error      └─ storing failed: Close
//
// A [Session] is one activation. When a client loads or resumes an active session, with the same or
// other roots, the adapter calls Open again, and closes the previous Session once the new one is
// stored. Close is called once, when no turn is running, and no other method is called afterwards.
//
// # Turns
//
// A session runs at most one turn at a time, unless Info.OverlappingTurns is set. To end a turn
// early, the adapter ends its context and calls [Session.Cancel]. The context's cause is
// [ErrCancelled] if the client cancelled the turn, closed, deleted or loaded the session, or left,
// and [ErrFenced] if another process opened the session. The backend then returns from its Work
// soon; the adapter sets the stopReason to "cancelled" where needed. If Work does not return in
// time, the adapter answers the prompt without it, and further updates of the turn fail.
package backend
