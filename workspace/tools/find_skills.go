package tools

import (
	"context"
	"fmt"
	"strings"

	"github.com/acp-agent/acp-agent/discovery"
	"github.com/acp-agent/acp-agent/internal/text"
)

type findSkillsInput struct {
	Query string `json:"query" jsonschema:"words of the task" min:"1"`
}

// maxSkills is the most skills that find_skills lists.
const maxSkills = 20

// findSkills lists the skills that fit best, with their files.
func (s *service) findSkills(ctx context.Context, in findSkillsInput) (Result, error) {
	catalog, err := discovery.Scan(ctx, s.own)
	if err != nil {
		return Result{}, err
	}
	found := catalog.FindSkills(in.Query)
	if len(found) == 0 {
		return Result{Text: "No skill in the folders has one of these words in its name or " +
			"description.\n"}, nil
	}
	var b strings.Builder
	for _, a := range found[:min(len(found), maxSkills)] {
		fmt.Fprintf(&b, "%s\n  %s\n", text.Attributed(a.Name, a.Description, s.limits.line),
			text.Printable(a.Path))
	}
	if left := len(found) - maxSkills; left > 0 {
		fmt.Fprintf(&b, "[%d more: use words that fit fewer skills]\n", left)
	}
	return Result{Text: b.String()}, nil
}
