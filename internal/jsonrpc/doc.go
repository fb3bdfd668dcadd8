// Package jsonrpc implements JSON-RPC 2.0 with one message per line, in both directions, over any
// pair of byte streams. It knows nothing about ACP.
//
// [Conn] takes care of
//
//   - Order. The read loop passes each message to the [Handler] in arrival order. Anything that takes time is the [Work]
//     that Accept returns, which runs on its own goroutine.
//   - Responses. Each request gets exactly one response, even after a panic, a cancellation or the end of the stream.
//   - Hostile input. Malformed lines, batches, invalid messages, duplicate names and lines over the limit are answered with
//     an error, and the connection continues.
//   - Bounds. Output is queued up to a limit. [Conn.Notify] waits while the queue is full, and reading stops while too many
//     requests are unanswered.
//
// Params and results pass through as the bytes that were sent.
//
//	c := jsonrpc.NewConn(in, out, handler, jsonrpc.Options{})
//	err := c.Serve(ctx) // until the input ends or ctx does
//
// [Reader] and [Writer] are the framing alone, for programs that forward messages of another
// protocol.
package jsonrpc
