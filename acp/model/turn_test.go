package model

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/llm"
	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/interop/modelserver"
	"github.com/acp-agent/acp-agent/sessionstore"
)

func TestUsage(t *testing.T) {
	e := open(t, setup{model: func(m *Model) { m.ContextTokens = 5000 }})
	r := e.prompt("Hello.")
	usage := r.of("usage_update")
	require.Len(t, usage, 1)
	require.Positive(t, usage[0].Used)
	require.Equal(t, 5000, usage[0].Size)
	var response struct {
		Meta map[string]struct{ Usage sdk.Usage } `json:"_meta"`
	}
	require.NoError(t, json.Unmarshal(r.result, &response))
	turn := response.Meta["acp-agent"].Usage
	require.Equal(t, usage[0].Used, turn.InputTokens+turn.OutputTokens)
	require.Equal(t, usage[0].Used, turn.TotalTokens)
}

func TestStopReasons(t *testing.T) {
	e := open(t, setup{})
	require.Equal(t, sdk.StopReasonMaxTokens,
		e.prompt("Say.", modelserver.Say("Half a").Ending("length")).stop)
	require.Equal(t, sdk.StopReasonRefusal, e.prompt("Say.",
		modelserver.Say("No.").Ending("refusal")).stop)
	require.Equal(t, sdk.StopReasonEndTurn, e.prompt("Say.", modelserver.Say("Yes.")).stop)
}

// The user reads that an answer is empty, also after tools.
//
// Clause B7.
func TestEmptyAnswers(t *testing.T) {
	e := open(t, setup{roots: []string{dirtest.New(t, "a.txt", "one\n")}})
	const empty = "The model stopped without an answer. Send another message to continue."
	r := e.prompt("Think.", modelserver.Think("Hm."))
	require.Equal(t, sdk.StopReasonEndTurn, r.stop)
	require.Equal(t, empty, r.text())
	r = e.prompt("Look.", modelserver.Read("a.txt"), modelserver.Think("Hm."))
	require.Equal(t, empty, r.text())
	r = e.prompt("Look.", modelserver.Together(modelserver.Say("I look."), modelserver.Read("a.txt")),
		modelserver.Say(" \n"))
	require.Equal(t, "I look. \n\n\n"+empty, r.text())
	r = e.prompt("Look.", modelserver.Say("I look.").Ending("tool_calls"))
	require.Equal(t, "I look.\n\nThe model's server says that the model calls a tool, but has sent no "+
		"call. Send another message to continue.", r.text())
	e.goOn()
	require.NotContains(t, string(e.last().Body), "without an answer")
}

// failedResult is the response to a prompt that the model could not answer.
const failedResult = `{"stopReason":"end_turn","_meta":{"acp-agent":{"failed":true}}}`

// Clause B4.
func TestHalfACallIsNotRun(t *testing.T) {
	t.Parallel()
	root := dirtest.New(t)
	for _, then := range []string{"", "end"} {
		e := open(t, setup{roots: []string{root}})
		write := modelserver.UseWith("write_file", arguments("path", "a.txt", "content", "a"))
		r := e.prompt("Write.", modelserver.Together(modelserver.Say("Writing."),
			write).Failing(modelserver.Fault{Events: 3, Then: then}))
		require.Equal(t, sdk.StopReasonEndTurn, r.stop)
		require.Contains(t, r.text(), "Writing.")
		require.Contains(t, r.text(), "Send another message to continue")
		require.Len(t, r.calls(), 4, "one for each attempt")
		for _, call := range r.calls() {
			require.Equal(t, sdk.ToolCallStatusFailed, call.Status)
			require.Empty(t, call.Meta.Agent, "it is not part of the conversation")
		}
		require.Empty(t, dirtest.Planted(t, root))
		e.goOn()
	}
}

// What was shown of an answer stays with a mark, and the model knows only the whole answer.
//
// Clause B4.
func TestRestartedAnswers(t *testing.T) {
	t.Parallel()
	for name, format := range map[string]func(*Model){"openai": nil, "anthropic": anthropic} {
		t.Run(name, func(t *testing.T) {
			e := open(t, setup{roots: []string{dirtest.New(t, "a.txt", "one\n")}, model: format})
			r := e.prompt("Say.", modelserver.Read("a.txt"), modelserver.Together(
				modelserver.Think("Hm."), modelserver.Say("First and last.").In(3)).Failing(
				modelserver.Fault{Times: 1, Events: map[string]int{"openai": 4, "anthropic": 7}[name]}))
			require.Regexp(t, `^First\b.*\n\n\*The connection .* was lost .* Trying again in .*s\. `+
				`The answer starts over:\*\n\nFirst and last\.$`, r.text())
			for range 2 {
				e.goOn()
				require.Equal(t, "First and last.", e.last().Of(modelserver.Said)[0])
				e.restart()
			}
		})
	}
}

// The fallback answers for the rest of the turn, and is told nothing of what was not complete.
//
// Clause B4.
func TestFallback(t *testing.T) {
	t.Parallel()
	e := open(t, setup{roots: []string{dirtest.New(t, "a.txt", "one\n")}, model: func(m *Model) {
		m.Name, m.Fallback = "first", "second"
	}})
	other := Model{ID: "second", BaseURL: e.model.URL() + "/v1", Name: "other", Fallback: "local"}
	e.setup.more = []Model{other}
	e.setup.model = func(m *Model) { m.BaseURL, m.Fallback = "http://127.0.0.1:1/v1", "second" }
	e.restart()
	r := e.prompt("Look.", modelserver.Read("a.txt"), modelserver.Say("Done."))
	require.Regexp(t, `^\*Cannot reach .*The model .second. answers instead:\*\n\nDone\.$`, r.text())
	require.Len(t, r.calls(), 1)
	require.NotContains(t, string(e.last().Body), "answers instead")
	require.Contains(t, string(e.last().Body), `"model":"other"`)
}

func TestCancelledAnswer(t *testing.T) {
	e := open(t, setup{})
	ctx, done := context.WithTimeout(t.Context(), patience)
	defer done()
	cancelled := make(chan error, 1)
	go func() {
		cancelled <- e.model.Waiting(ctx)
		e.cancel()
	}()
	r := e.prompt("Say.", modelserver.Wait())
	require.Equal(t, sdk.StopReasonCancelled, r.stop)
	require.Empty(t, r.text())
	require.NoError(t, <-cancelled)

	e.cancelAfter(func(u update) bool { return u.Kind == "agent_message_chunk" && u.text() != "" })
	r = e.prompt("Say.",
		modelserver.Say("The beginning and the end.").In(2).Failing(modelserver.Fault{Events: 2,
			Then: "silence"}))
	require.Equal(t, sdk.StopReasonCancelled, r.stop)
	require.NotEmpty(t, r.text())
	e.goOn()
	require.Contains(t, strings.Join(e.last().Of(modelserver.Said), "\n"), r.text(),
		"the model knows what it said")
}

// An answer whose turn is cancelled while its calls are shown goes back with all of them: some
// servers do not accept a part of it.
//
// Clause B5, B6.
func TestCancelWhileCallsAreShown(t *testing.T) {
	e := open(t, setup{roots: []string{dirtest.New(t, "a.txt", "one\n")}})
	calls := make([]modelserver.Order, 100)
	for i := range calls {
		calls[i] = modelserver.Read("a.txt")
	}
	e.cancelAfter(func(u update) bool { return u.RawInput != nil })
	require.Equal(t, sdk.StopReasonCancelled, e.prompt("Look.", modelserver.Together(calls...)).stop)
	e.goOn()
	require.Len(t, e.results(), len(calls))
	e.restart()
	e.goOn()
	require.Len(t, e.results(), len(calls))
}

func TestCancelledServerTool(t *testing.T) {
	e := open(t, setup{servers: []sdk.McpServer{playedServer("played")}})
	e.answer(allowOnce)
	e.cancelAfter(func(u update) bool { return u.Status == sdk.ToolCallStatusInProgress })
	r := e.prompt("Wait.", modelserver.Together(modelserver.UseWith("played__hang", `{}`),
		modelserver.UseWith("list_roots", `{}`)))
	require.Equal(t, sdk.StopReasonCancelled, r.stop)
	for _, call := range r.calls() {
		require.Equal(t, sdk.ToolCallStatusFailed, call.Status)
	}
	e.goOn()
}

func TestLoops(t *testing.T) {
	for name, call := range map[string]modelserver.Order{
		"fails":    modelserver.UseWith("read_file", arguments("path", "missing.txt")),
		"succeeds": modelserver.UseWith("list_roots", `{}`),
		"changes nothing": modelserver.UseWith("edit_file",
			arguments("path", "missing.txt", "old_text", "a", "new_text", "b")),
	} {
		t.Run(name, func(t *testing.T) {
			e := open(t, setup{roots: []string{dirtest.New(t)}})
			e.answer(rejectOnce)
			orders := slices.Repeat([]modelserver.Order{call}, stopAfter+1)
			r := e.prompt("Do.", orders...)
			require.Equal(t, sdk.StopReasonEndTurn, r.stop)
			calls := r.calls()
			require.Len(t, calls, stopAfter+1)
			for i, call := range calls[:stopAfter] {
				warned := strings.Contains(call.RawOutput.Text, "[This call has had the same result ")
				require.Equal(t, i+1 >= warnAfter, warned)
			}
			stuck := "the same call has had the same result 10 times: " + calls[0].Title
			require.Equal(t, "Go on, although "+stuck, r.asked[0].Call.Title)
			require.Equal(t, "Go on, although "+stuck, calls[stopAfter].Title)
			require.Equal(t, sdk.ToolCallStatusFailed, calls[stopAfter].Status)
			require.True(t, strings.HasSuffix(r.text(), "Stopped, because "+stuck+
				". Send another message that says what to do instead."), r.text())
			e.goOn()

			// The user may let it go on.
			e.answer(allowOnce)
			r = e.prompt("Do.", append(orders, modelserver.Say("Done."))...)
			require.Equal(t, "Done.", r.text())
			require.Len(t, r.asked, 1)

			// After a change the same call is no loop.
			write := modelserver.UseWith("write_file", arguments("path", "a.txt", "content", "a"))
			orders = slices.Repeat([]modelserver.Order{call}, stopAfter-1)
			orders = append(append(orders, write), orders...)
			require.Equal(t, modelserver.Done, e.prompt("Do.", orders...).text())
		})
	}
}

func TestManySteps(t *testing.T) {
	orders := make([]modelserver.Order, maxSteps+1)
	for i := range orders {
		orders[i] = modelserver.UseWith("find_files", arguments("glob", fmt.Sprint(i)))
	}
	e := open(t, setup{})
	r := e.prompt("Find.", orders...)
	require.Equal(t, sdk.StopReasonMaxTurnRequests, r.stop)
	require.Len(t, r.calls(), maxSteps)
	require.Contains(t, r.text(), "Send another message to continue.")
}

// What a session has cost is shown, also after a restart, with what summaries have cost.
//
// Clause B3.
func TestCost(t *testing.T) {
	e := open(t, setup{model: func(m *Model) {
		m.Prices = &Prices{Input: 2, Cached: 1, Output: 10, Currency: "EUR"}
	}})
	last := 0.0
	for range 2 {
		for _, words := range []string{"Hi", "/compact", "Hi again"} {
			var shown []float64
			for _, u := range e.prompt(words).of(string(sessionstore.UsageUpdate)) {
				var usage struct{ Cost sdk.Cost }
				require.NoError(t, json.Unmarshal(u.Raw, &usage))
				require.Equal(t, "EUR", usage.Cost.Currency)
				shown = append(shown, usage.Cost.Amount)
			}
			if words == "/compact" {
				require.Empty(t, shown)
				continue
			}
			// One token for each 4 bytes, see modelserver.
			least := float64(len(e.last().Body)) / 4 * 2e-6
			require.Len(t, shown, 1)
			require.Greater(t, shown[0], last+least)
			if words == "Hi" {
				require.Less(t, shown[0], last+2*least)
			} else {
				require.Greater(t, shown[0], last+least+1e-5, "the summary")
			}
			last = shown[0]
		}
		e.restart()
	}
	require.InDelta(t, 2.5, Prices{Input: 2, Cached: 1, Output: 10}.cost(
		llm.Usage{Input: 1e6, Cached: 1e6 / 2, Output: 1e5}), 1e-9)
}
