// Package wire is JSON-RPC 2.0 over lines: one message a line, in both
// directions, over any pair of byte streams. It knows nothing of ACP.
//
// What it takes care of, so that nobody above it has to:
//
//   - Order. Each message is accepted by the [Handler] on the read loop, in
//     arrival order, without blocking. What takes time is the [Work] that Accept
//     returns; it runs on a goroutine of its own (clause W5).
//   - Exactly one answer for each request, whatever happens: a panic, a
//     cancellation, the end of the stream (W4, W6, W8, W9).
//   - Hostile input. Malformed lines, batches, wrong envelopes, duplicate names,
//     lines over the limit: each is answered as JSON-RPC says and the connection
//     goes on (W2, W3).
//   - Bounds. Output is queued up to a limit; [Conn.Notify] waits when it is full,
//     and reading stops while too many requests are unanswered (W11).
//
// A message's params pass through as the bytes that were sent.
//
//	c := wire.NewConn(in, out, handler, wire.Options{})
//	err := c.Serve(ctx) // until the input ends or ctx does
package jsonrpc
