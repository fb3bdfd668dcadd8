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

//lint:file-ignore SA1019 the SDK marks roots as deprecated (SEP-2577); they are supported for existing clients

import (
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acp-agent/acp-agent/workspace"
)

// List returns the result of roots/list for a server.
func (s Snapshot) List() *mcp.ListRootsResult {
	list := &mcp.ListRootsResult{Roots: make([]*mcp.Root, 0, s.Len())}
	for _, r := range s.All() {
		list.Roots = append(list.Roots, &mcp.Root{URI: r.URI, Name: r.Name})
	}
	return list
}

// maxEntries limits the entries of a client's list that are read.
const maxEntries = 1000

// Entry is an entry of a client's list of roots.
type Entry struct {
	// URI and Name are the client's, if any.
	URI, Name string
	// Dir is the directory. It is zero if Err is set.
	Dir workspace.Dir
	// Err is why the entry is not valid, such as a *[URIError].
	Err error
}

// ParseList reads a client's list of roots, in its order and including invalid entries. It does not
// check whether directories exist. If the list is too long it returns the beginning and an error.
func ParseList(list *mcp.ListRootsResult) ([]Entry, error) {
	if list == nil {
		return nil, nil
	}
	roots, err := list.Roots, error(nil)
	if n := len(roots); n > maxEntries {
		roots = roots[:maxEntries]
		err = fmt.Errorf("the client lists %d roots; only the first %d are used", n, maxEntries)
	}
	entries := make([]Entry, 0, len(roots))
	for _, r := range roots {
		e := Entry{Err: errors.New("it has no uri")}
		if r != nil && r.URI != "" {
			e = Entry{URI: r.URI, Name: r.Name}
			e.Dir, e.Err = parseURI(r.URI)
		}
		entries = append(entries, e)
	}
	return entries, err
}
