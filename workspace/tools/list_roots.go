package tools

import (
	"context"
	"fmt"
	"strings"

	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/workspace"
)

func (s *service) listRoots(context.Context, struct{}) (Result, error) {
	var b strings.Builder
	for i, r := range s.checked.Opened() {
		state, err := s.checked.State(i)
		if err != nil {
			return Result{}, err
		}
		path, real := r.Dir.String(), representable(r.Real.String())
		fmt.Fprintf(&b, "%d: %s", i, text.Printable(path))
		if real != path {
			fmt.Fprintf(&b, " -> %s", text.Printable(real))
		}
		if state != workspace.OK {
			fmt.Fprintf(&b, " [%s]", state)
		}
		if r.Grant == workspace.ReadOnly {
			b.WriteString(" [read-only]")
		}
		if i == 0 {
			b.WriteString(" [working directory: relative paths start here]")
		}
		b.WriteString("\n")
	}
	return Result{Text: b.String()}, nil
}
