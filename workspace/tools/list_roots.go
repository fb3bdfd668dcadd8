package tools

import (
	"context"
	"fmt"
	"strings"

	"github.com/acp-agent/acp-agent/workspace"
)

type listRootsInput struct{}

type listedRoots struct {
	Roots []listedRoot `json:"roots"`
}

type listedRoot struct {
	Index int    `json:"index" jsonschema:"its place among the roots; relative paths start at root 0"`
	Path  string `json:"path" jsonschema:"absolute, as other tools name it"`
	Real  string `json:"real_path" jsonschema:"the same without links"`
	URI   string `json:"uri"`
	State string `json:"state" jsonschema:"ok, or what has become of it: moved, replaced, missing, unreachable"`
}

func (s *Set) listRootsTool() Tool {
	return define(s, Tool{
		Name:  "list_roots",
		Title: "List roots",
		Description: "List the directories that the other tools have access to. Paths must lie in one of them; " +
			"a relative path starts at the first.",
		Annotations: Annotations{ReadOnly: true, Idempotent: true},
	}, nil, func(_ context.Context, _ listRootsInput) (listedRoots, error) {
		list := listedRoots{Roots: []listedRoot{}}
		for i, r := range s.ws.Opened() {
			state, err := s.ws.State(i)
			if err != nil {
				return list, err
			}
			list.Roots = append(list.Roots, rootEntry(r, state))
		}
		return list, nil
	})
}

func rootEntry(r workspace.Root, state workspace.State) listedRoot {
	return listedRoot{
		Index: r.Index, Path: r.Dir.String(), Real: shown(r.Real.String()), URI: r.Real.URI(), State: string(state),
	}
}

func (l listedRoots) text() string {
	var b strings.Builder
	for _, r := range l.Roots {
		fmt.Fprintf(&b, "%d: %s", r.Index, Printable(r.Path))
		if r.Real != r.Path {
			fmt.Fprintf(&b, " (really %s)", Printable(r.Real))
		}
		if r.State != string(workspace.OK) {
			fmt.Fprintf(&b, " [%s]", r.State)
		}
		if r.Index == 0 {
			b.WriteString(" [relative paths start here]")
		}
		b.WriteString("\n")
	}
	return b.String()
}
