package tools

import (
	"context"
	"fmt"
	"strings"

	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/workspace"
)

type rootList struct {
	Roots []rootEntry
}

type rootEntry struct {
	Index int    // position among the roots; the first is the working directory
	Path  string // absolute path, as other tools show it
	Real  string // the path with links resolved
	State string // ok, or what has happened to the directory: moved, replaced, missing, unreachable
	Grant string `json:",omitempty"` // read-only, "" if files may be changed
}

func (s *Set) listRoots(context.Context, struct{}) (rootList, error) {
	list := rootList{Roots: []rootEntry{}}
	for i, r := range s.ws.Opened() {
		grant := ""
		if r.Grant == workspace.ReadOnly {
			grant = "read-only"
		}
		state, err := s.ws.State(i)
		if err != nil {
			return list, err
		}
		list.Roots = append(list.Roots, rootEntry{
			Index: i, Path: r.Dir.String(), Real: representable(r.Real.String()),
			State: string(state), Grant: grant,
		})
	}
	return list, nil
}

func (l rootList) String() string {
	var b strings.Builder
	for _, r := range l.Roots {
		fmt.Fprintf(&b, "%d: %s", r.Index, text.Printable(r.Path))
		if r.Real != r.Path {
			fmt.Fprintf(&b, " -> %s", text.Printable(r.Real))
		}
		if r.State != string(workspace.OK) {
			fmt.Fprintf(&b, " [%s]", r.State)
		}
		if r.Grant != "" {
			fmt.Fprintf(&b, " [%s]", r.Grant)
		}
		if r.Index == 0 {
			b.WriteString(" [working directory: relative paths start here]")
		}
		b.WriteString("\n")
	}
	return b.String()
}
