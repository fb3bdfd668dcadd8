// Package backend is the seam between the ACP adapter and what answers prompts.
//
// The adapter (package acp) speaks the protocol: it validates requests, builds root
// sets, opens workspaces, stores sessions and histories, keeps order, cancels, and
// checks what goes to the client. A [Backend] is the rest: one that is built in
// (acp/explore), another ACP agent behind us (acp/proxy), a model with tools, or
// a host program's own.
//
// Two rules make them all fit.
//
// What passes through is raw JSON. A runtime that cares decodes it; one that forwards
// leaves alone members and kinds that nobody here knows. The one exception is the
// session id: params and updates cross the seam without their sessionId member. The
// adapter takes it off on the way in and puts the right one on the way out, so a
// runtime never sees the client's ids and can have its own.
//
// Calls that carry a client's message come in two halves. The call itself runs in
// arrival order and must not block: it decides, notes down, or queues a message to a
// child. The [Work] it returns runs on a goroutine of its own and may take its time.
// [Backend.Initialize], [Backend.Open] and the Close methods are not split: they run on the
// goroutine of their request and may block until their context ends.
//
// # Life of a session
//
//	Open ──ok──▶ committed ──▶ Prompt, Call, Notify … ──▶ Close
//	  │             │
//	  └─error       └─ commit failed: Close
//
// One [Session] value is one activation: when a client loads or resumes a live
// session, with the same roots or others, the runtime is asked to Open anew, and
// the old value is closed once the new one is committed. Methods of a Session are
// not called after its Close; Close is called once, when no turn runs, and ends with its
// context.
//
// # Turns
//
// At most one turn runs in a session at a time. When it is to end early its context ends
// and [Session.Cancel] is called. The context's cause tells why: [ErrCancelled] (the client
// cancelled, or closed, deleted or loaded the session, or left) or [ErrFenced]
// (another process opened the session). A runtime returns from Work soon after; what
// it returned is answered, with stopReason "cancelled" put right by the adapter. One that does not return
// within the adapter's grace is answered for. Updates through a turn's [Updates] fail after that.
package backend
