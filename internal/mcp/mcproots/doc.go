// Package mcproots implements the roots of MCP, for clients and for servers.
//
// For clients, a [Snapshot] holds the roots of a session at one time: real paths in the session's
// order, each directory once. [Take] makes a Snapshot of an open workspace, without directories
// that are no longer where they were.
//
// Both eras of the protocol are supported. Up to revision 2025-11-25 a server sends roots/list and
// is notified of changes. Since 2026-07-28 a server asks for the roots in the result of a call.
//
// For servers, [ParseList] reads a client's list of roots. Reading a file URI is the inverse of
// [workspace.Dir.URI]. Both are strict: URIs that readers could interpret differently are rejected
// with a *[URIError] that says why.
package mcproots
