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
	updates backend.Updates
	usage   llm.Usage // of all requests of the turn
}

// run answers the prompt.
func (t *turn) run(ctx context.Context, params backend.Raw) (backend.Raw, error) {
	if err := t.announceCommands(ctx, t.updates); err != nil {
		return nil, err
	}
	_, client := t.current()
	if focus, ok := compactCall(params); ok {
		if err := t.compact(ctx, client, focus); err != nil {
			return t.explain(ctx, err)
		}
		return t.result(sdk.StopReasonEndTurn), nil
	}
	message, err := t.message(ctx, params, client)
	if err != nil {
		return nil, err
	}
	t.conversation.add(message)
	for range maxSteps {
		done, reason, err := t.step(ctx)
		switch {
		case err != nil:
			return t.explain(ctx, err)
		case done:
			return t.result(reason), nil
		}
	}
	if err := t.say(ctx, fmt.Sprintf("\n\nStopped after %d requests to the model. Send another message to go on.", maxSteps)); err != nil {
		return nil, err
	}
	return t.result(sdk.StopReasonMaxTurnRequests), nil
}

// step asks the model once and runs the tool calls of its answer. It reports whether the turn is done, and why.
func (t *turn) step(ctx context.Context) (done bool, reason sdk.StopReason, err error) {
	set, client := t.current() // the user may have changed them since the last step
	tools, err := t.newToolbox(ctx, set.Mode)
	if err != nil {
		return false, "", err
	}
	messages, err := t.fit(ctx, client)
	if err != nil {
		return false, "", err
	}
	request := llm.Request{System: t.systemPrompt(set.Mode), Messages: messages, Tools: tools.tools, Effort: set.Effort}
	answer, finish, err := t.ask(ctx, client, request)
	t.conversation.add(answer.message)
	if err != nil {
		return false, "", err
	}
	t.count(finish.Usage)
	if len(answer.calls) > 0 {
		results, err := tools.run(ctx, answer.calls)
		if err != nil {
			return false, "", err
		}
		t.conversation.add(resultsMessage(results))
		return false, "", nil
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

// answer is a message of the model as it arrives.
type answer struct {
	message llm.Message
	calls   []llm.ToolCall // those in message
}

// ask sends a request and shows the answer as it arrives. If the answer fails, it returns what has arrived, without tool calls.
func (t *turn) ask(ctx context.Context, client *llm.Client, r llm.Request) (answer, llm.Finish, error) {
	a := answer{message: llm.Message{Role: llm.Assistant}}
	var said []byte
	var finish llm.Finish
	var failed error
	var calls []llm.Part
	for event, err := range client.Stream(ctx, r) {
		if err != nil {
			failed = err
			break
		}
		switch e := event.(type) {
		case llm.TextDelta:
			said = append(said, e...)
			err = t.say(ctx, string(e))
		case llm.ThinkingDelta:
			err = t.think(ctx, string(e))
		case llm.Thinking:
			a.message.Parts = append(a.message.Parts, e)
		case llm.ToolCall:
			calls = append(calls, e)
			a.calls = append(a.calls, e)
		case llm.Retry:
			err = t.think(ctx, fmt.Sprintf("%s. Trying again in %s.\n\n", text.Plain(e.Err.Error()), e.After.Round(1e8)))
		case llm.Finish:
			finish = e
		}
		if err != nil {
			failed = err
			break
		}
	}
	if len(said) > 0 {
		a.message.Parts = append(a.message.Parts, llm.Text(said))
	}
	if failed != nil {
		a.calls = nil
		return a, finish, failed
	}
	a.message.Parts = append(a.message.Parts, calls...)
	return a, finish, nil
}

func resultsMessage(results []llm.ToolResult) llm.Message {
	m := llm.Message{Role: llm.User}
	for _, r := range results {
		m.Parts = append(m.Parts, r)
	}
	return m
}

// count notes what a request has used.
func (t *turn) count(u llm.Usage) {
	t.usage.Input += u.Input
	t.usage.Cached += u.Cached
	t.usage.Output += u.Output
	if u.Input > 0 {
		t.conversation.used = u.Input + u.Output
	}
}

// say shows a piece of the answer.
func (t *turn) say(ctx context.Context, s string) error {
	return t.updates.Update(ctx, backend.Text(s))
}

// think shows a piece of what the model thinks, or a note on what goes on.
func (t *turn) think(ctx context.Context, s string) error {
	return t.updates.Update(ctx, backend.NewUpdate(sdk.UpdateAgentThoughtText(s)))
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
	if err := t.say(ctx, "\n\n"+text.Plain(failed.Error())+"."); err != nil {
		return nil, err
	}
	return t.result(sdk.StopReasonEndTurn), nil
}
