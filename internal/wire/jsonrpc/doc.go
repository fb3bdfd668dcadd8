// Package jsonrpc implements JSON-RPC 2.0 in both directions over a connection made of messages. It
// knows nothing about ACP.
//
// [Conn] takes care of
//
//   - Order. The read loop passes each message to the [Handler] in arrival order. Anything that
//     takes time is the [Work] that Accept returns, which runs on its own goroutine.
//   - Responses. Each request gets exactly one response, even after a panic, a cancellation or the
//     end of the connection.
//   - Hostile input. Malformed messages, batches, duplicate names and messages over the limit are
//     answered with an error, and the connection continues.
//   - Bounds. Output is queued up to a limit. [Conn.Notify] waits while the queue is full, and
//     reading stops while too many requests are unanswered.
//
// Params and results pass through as the bytes that were sent.
//
//	t := jsonrpc.NewLines(in, out, 0)
//	c := jsonrpc.NewConn(t, handler, jsonrpc.Options{})
//	err := c.Serve(ctx) // until the input ends or ctx does
//
// [Transport] is the connection made of messages; implement it for another kind of connection.
// [NewLines] implements it with one message per line.
//
// [Reader] and [Writer] read and write lines without JSON-RPC, for programs that forward messages
// of another protocol.
package jsonrpc
