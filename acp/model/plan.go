package model

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/workspace/tools"
)

// planName is the name of the tool that shows a plan.
const planName = "update_plan"

// maxEntries is the length of the longest plan.
const maxEntries = 100

type planInput struct {
	Entries []planEntry `json:"entries" jsonschema:"the whole plan, in order"`
}

type planEntry struct {
	Content  string `json:"content" jsonschema:"what is to be done, in one sentence"`
	Priority string `json:"priority,omitempty" jsonschema:"high, medium or low; default medium"`
	Status   string `json:"status" jsonschema:"pending, in_progress or completed"`
}

// planTool returns the tool that shows the user a plan.
func planTool() tools.Tool {
	return tools.Define(tools.Tool{
		Name: planName,
		Description: "Show the user your plan for a task of several steps, and what is done of it. Send the whole plan each time. " +
			"At most one entry should be in progress.",
		Annotations: tools.Annotations{ReadOnly: true, Idempotent: true},
	}, updatePlan)
}

func updatePlan(ctx context.Context, in planInput) (string, error) {
	if len(in.Entries) > maxEntries {
		return "", fmt.Errorf("the plan has %d entries, and may have up to %d: put small steps together", len(in.Entries), maxEntries)
	}
	plan := sdk.SessionUpdatePlan{Entries: []sdk.PlanEntry{}}
	done := 0
	for i, e := range in.Entries {
		shown := sdk.PlanEntry{
			Content: text.Line(e.Content, 500), Priority: sdk.PlanEntryPriority(cmp.Or(e.Priority, "medium")), Status: sdk.PlanEntryStatus(e.Status),
		}
		switch shown.Priority {
		case sdk.PlanEntryPriorityHigh, sdk.PlanEntryPriorityMedium, sdk.PlanEntryPriorityLow:
		default:
			return "", fmt.Errorf("the priority of entry %d must be high, medium or low", i+1)
		}
		switch shown.Status {
		case sdk.PlanEntryStatusCompleted:
			done++
		case sdk.PlanEntryStatusPending, sdk.PlanEntryStatusInProgress:
		default:
			return "", fmt.Errorf("the status of entry %d must be pending, in_progress or completed", i+1)
		}
		if strings.TrimSpace(shown.Content) == "" {
			return "", fmt.Errorf("the content of entry %d is empty", i+1)
		}
		plan.Entries = append(plan.Entries, shown)
	}
	if err := callOf(ctx).turn.updates.Update(ctx, backend.NewUpdate(sdk.SessionUpdate{Plan: &plan})); err != nil {
		return "", err
	}
	return fmt.Sprintf("The user sees the plan: %d of %s done.", done, text.Count(len(plan.Entries), "entry", "entries")), nil
}
