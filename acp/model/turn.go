package model

import (
	"context"
	"errors"
	"fmt"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/llm"
	"github.com/acp-agent/acp-agent/internal/text"
)

// maxSteps is how often the model is asked in one turn.
const maxSteps = 200

// turn answers one prompt.
type turn struct {
	*session
	updates backend.Updates // what they show becomes part of the conversation
	steps   int             // how often the model was asked
	usage   llm.Usage       // of all requests of the turn

	uncompacted int // the step from which on the conversation may be summarised again
}

// run answers the prompt.
func (t *turn) run(ctx context.Context, params backend.Raw) (backend.Raw, error) {
	if err := t.announceCommands(ctx, t.updates); err != nil {
		return nil, err
	}
	_, client := t.current()
	call, err := t.prompt(ctx, params, client)
	if err != nil {
		return nil, err
	}
	if call.name == compactCommand {
		if err := t.compact(ctx, client, call.arguments); err != nil {
			return t.explain(ctx, err)
		}
		return t.result(sdk.StopReasonEndTurn), nil
	}
	for range maxSteps {
		done, reason, err := t.step(ctx)
		switch {
		case err != nil:
			return t.explain(ctx, err)
		case done:
			return t.result(reason), nil
		}
	}
	if err := t.note(ctx, fmt.Sprintf("\n\nStopped after %d requests to the model. Send another message to go on.", maxSteps)); err != nil {
		return nil, err
	}
	return t.result(sdk.StopReasonMaxTurnRequests), nil
}

// step asks the model once and runs the tool calls of its answer. It reports whether the turn is done, and why.
func (t *turn) step(ctx context.Context) (done bool, reason sdk.StopReason, err error) {
	t.steps++
	set, client := t.current() // the user may have changed them since the last step
	tools, err := t.newToolbox(ctx, set.Mode)
	if err != nil {
		return false, "", err
	}
	request, err := t.fit(ctx, client, llm.Request{System: t.systemPrompt(set.Mode), Tools: tools.tools, Effort: set.Effort})
	if err != nil {
		return false, "", err
	}
	calls, finish, err := t.ask(ctx, client, request)
	if err != nil {
		return false, "", t.shorten(ctx, client, err)
	}
	t.count(finish.Usage)
	if len(calls) > 0 {
		return false, "", tools.run(ctx, calls)
	}
	switch finish.Reason {
	case llm.Length:
		return true, sdk.StopReasonMaxTokens, nil
	case llm.Refused:
		return true, sdk.StopReasonRefusal, nil
	default:
		return true, sdk.StopReasonEndTurn, nil
	}
}

// ask sends a request and shows the answer as it arrives. It returns the answer's tool calls if the answer is complete.
func (t *turn) ask(ctx context.Context, client *llm.Client, r llm.Request) ([]llm.ToolCall, llm.Finish, error) {
	var calls []llm.ToolCall
	var finish llm.Finish
	for event, err := range t.backend.stream(ctx, client, r) {
		if err != nil {
			return nil, finish, err
		}
		switch e := event.(type) {
		case llm.TextDelta:
			err = t.say(ctx, string(e))
		case llm.ThinkingDelta:
			err = t.think(ctx, string(e))
		case llm.Thinking:
			t.conversation.think(e)
		case llm.ToolCall:
			calls = append(calls, e)
		case llm.Retry:
			err = t.showRetry(ctx, e)
		case llm.Finish:
			finish = e
		}
		if err != nil {
			return nil, finish, err
		}
	}
	return calls, finish, nil
}

// count notes what a request has used.
func (t *turn) count(u llm.Usage) {
	t.usage.Input += u.Input
	t.usage.Cached += u.Cached
	t.usage.Output += u.Output
	t.conversation.count(u.Input)
}

// say shows a piece of the answer.
func (t *turn) say(ctx context.Context, s string) error {
	return t.updates.Update(ctx, backend.Text(s))
}

// note shows a piece of text that the model does not get to know.
func (t *turn) note(ctx context.Context, s string) error {
	return t.updates.Update(ctx, meta{Note: true}.message(s))
}

// think shows a piece of what the model thinks, or a note on what goes on.
func (t *turn) think(ctx context.Context, s string) error {
	return t.updates.Update(ctx, backend.NewUpdate(sdk.UpdateAgentThoughtText(s)))
}

// showRetry tells the user that a request will be sent again.
func (t *turn) showRetry(ctx context.Context, r llm.Retry) error {
	return t.think(ctx, fmt.Sprintf("%s. Trying again in %s.\n\n", text.Plain(r.Err.Error()), r.After.Round(1e8)))
}

// result returns the response to the prompt.
func (t *turn) result(reason sdk.StopReason) backend.Raw {
	return backend.Encode(map[string]any{"stopReason": reason})
}

// explain ends a turn whose model could not be asked with an answer that says why.
func (t *turn) explain(ctx context.Context, err error) (backend.Raw, error) {
	var failed *llm.Error
	if !errors.As(err, &failed) {
		return nil, err
	}
	if err := t.note(ctx, "\n\n"+text.Plain(failed.Error())+"."); err != nil {
		return nil, err
	}
	return t.result(sdk.StopReasonEndTurn), nil
}
