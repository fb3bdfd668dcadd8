package model

import (
	"testing"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/interop/modelserver"
)

func TestPlan(t *testing.T) {
	e := open(t, setup{})
	r := e.prompt("Plan.", modelserver.UseWith("update_plan", `{"entries":[
		{"content":"Read","priority":"high","status":"completed"},{"content":"Write\nit","status":"in_progress"}]}`))
	plan := r.of("plan")
	require.Len(t, plan, 1)
	require.Equal(t, []sdk.PlanEntry{
		{Content: "Read", Priority: sdk.PlanEntryPriorityHigh,
			Status: sdk.PlanEntryStatusCompleted},
		{Content: "Write it", Priority: sdk.PlanEntryPriorityMedium,
			Status: sdk.PlanEntryStatusInProgress},
	}, plan[0].Entries)
	require.Equal(t, "The user sees the plan: 1 of 2 entries done.", e.results()[0])

	for entries, result := range map[string]string{
		`[{"content":"a","status":"maybe"}]`:                    "the status of entry 1 must be",
		`[{"content":"a","status":"pending","priority":"top"}]`: "the priority of entry 1 must be",
		`[{"content":" ","status":"pending"}]`:                  "the content of entry 1 is empty",
		`[{"content":"a"}]`: "entries must be a list of at most 100 items, each an object with " +
			"content, status",
		`"a"`: "entries must be a list",
	} {
		r := e.prompt("Plan.", modelserver.UseWith("update_plan", `{"entries":`+entries+`}`))
		require.Empty(t, r.of("plan"))
		require.Contains(t, r.calls()[0].RawOutput.Text, result)
	}
}
