package model

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/workspace/tools"
)

type planInput struct {
	Entries []planEntry `json:"entries" jsonschema:"the whole plan, in order" max:"100"`
}

type planEntry struct {
	Content  string `json:"content" jsonschema:"what is to be done, in one sentence"`
	Priority string `json:"priority,omitempty" jsonschema:"high, medium or low; default medium"`
	Status   string `json:"status" jsonschema:"pending, in_progress or completed"`
}

// planTool returns the tool that shows the user a plan.
func planTool() tool {
	return tool{run: (*modelCall).runOwn, Tool: tools.Define(tools.Tool{
		Name: "update_plan", Kind: tools.KindThink,
		Description: "Show the user your plan for a task of several steps, and what is done " +
			"of it. Send the whole plan each time. At most one entry should be in progress.",
		Annotations: tools.Annotations{ReadOnly: true, Idempotent: true},
	}, func(planInput) string { return "Update the plan" }, (*modelCall).updatePlan)}
}

// planStatuses are the statuses that a model means with the words of another agent.
var planStatuses = map[string]string{"done": "completed", "complete": "completed",
	"finished": "completed", "doing": "in_progress", "active": "in_progress",
	"current": "in_progress", "todo": "pending", "open": "pending", "": "pending"}

func (c *modelCall) updatePlan(ctx context.Context, in planInput) (string, error) {
	plan := sdk.SessionUpdatePlan{Entries: []sdk.PlanEntry{}}
	done := 0
	for i, e := range in.Entries {
		e.Status = strings.ReplaceAll(strings.ToLower(e.Status), "-", "_")
		e.Status = cmp.Or(planStatuses[e.Status], e.Status)
		e.Content, e.Priority = text.Line(e.Content, 500), cmp.Or(e.Priority, "medium")
		switch {
		case !slices.Contains([]string{"high", "medium", "low"}, e.Priority):
			return "", fmt.Errorf("the priority of entry %d must be high, medium or low", i+1)
		case !slices.Contains([]string{"pending", "in_progress", "completed"}, e.Status):
			return "", fmt.Errorf(
				"the status of entry %d must be pending, in_progress or completed", i+1)
		case strings.TrimSpace(e.Content) == "":
			return "", fmt.Errorf("the content of entry %d is empty", i+1)
		case e.Status == "completed":
			done++
		}
		plan.Entries = append(plan.Entries, sdk.PlanEntry{
			Content: e.Content, Priority: sdk.PlanEntryPriority(e.Priority),
			Status: sdk.PlanEntryStatus(e.Status),
		})
	}
	shown := backend.NewUpdate(sdk.SessionUpdate{Plan: &plan})
	if err := c.turn.updates.Update(ctx, shown); err != nil {
		return "", err
	}
	entries := text.Count(len(plan.Entries), "entry", "entries")
	return fmt.Sprintf("The user sees the plan: %d of %s done.", done, entries), nil
}
