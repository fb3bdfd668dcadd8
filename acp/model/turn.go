package model

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/llm"
	"github.com/acp-agent/acp-agent/internal/text"
)

// maxSteps is how many requests one turn sends to the model.
const maxSteps = 200

// modelTurn answers one prompt.
type modelTurn struct {
	*modelSession
	updates  backend.Updates // shown updates become part of the conversation
	endpoint *endpoint       // of the model that answers in this step
	steps    int             // requests that were sent to the model
	used     llm.Usage       // in all requests
	// instead maps models that cannot answer in this turn to their fallbacks.
	instead map[*endpoint]*endpoint
	spoke   bool // it has said something

	loops
	uncompacted int // the first step in which the conversation may be summarised again
	unforgotten int // the first step in which the model's thoughts may be forgotten again

	pictured atomic.Int64 // bytes of media that tools have shown the model
}

// run answers the prompt.
func (t *modelTurn) run(ctx context.Context, params backend.Raw) (backend.Raw, error) {
	if err := t.announceCommands(ctx, t.updates); err != nil {
		return nil, err
	}
	slash, err := t.prompt(ctx, params)
	if err != nil {
		return nil, err
	}
	for _, c := range ownCommands() {
		if c.Name == slash.Name {
			return c.run(t, ctx, slash.Arguments)
		}
	}
	for range maxSteps {
		reason, err := t.step(ctx)
		if err == nil && reason != "" {
			err = t.announceCommands(ctx, t.updates) // with prompts that are known now
		}
		if err != nil && t.fallBack(ctx, err) {
			continue
		}
		switch {
		case err != nil:
			return t.explain(ctx, err)
		case reason != "":
			return backend.Stopped(reason), nil
		}
	}
	err = t.note(ctx, fmt.Sprintf("\n\nStopped after %d requests to the model. "+
		"Send another message to continue.", maxSteps))
	return backend.Stopped(sdk.StopReasonMaxTurnRequests), err
}

// step sends one request to the model and runs the tool calls of its answer. It returns why the
// turn is done, or "" if it is not done.
func (t *modelTurn) step(ctx context.Context) (sdk.StopReason, error) {
	t.steps++
	request, box, err := t.nextRequest(ctx)
	if err != nil {
		return "", err
	}
	a, err := t.showAnswer(ctx, request, box)
	if err == nil {
		_, err = box.noteUnoffered(ctx) // the server may have rejected some
	}
	if err != nil {
		return "", errors.Join(box.dropDrafts(ctx), t.leaveOut(ctx, t.shorten(ctx, err)))
	}
	err = t.showUsage(ctx, a.finish.Usage)
	if err != nil || len(a.calls) == 0 || a.finish.Reason == llm.Refused {
		err = errors.Join(err, box.dropDrafts(ctx))
	}
	if err != nil {
		return "", err
	}
	switch {
	case a.finish.Reason == llm.Refused:
		// As ACP requires, the prompt and everything after it are not sent with the next prompt.
		// With them the model would usually refuse that too.
		return sdk.StopReasonRefusal, t.updates.Update(ctx, message(entry{Refused: true},
			"\n\n*The model refused to answer. Your next prompt is sent without this one.*"))
	case len(a.calls) == 0:
		return t.conclude(ctx, a, box)
	}
	if err := box.run(ctx, a.calls); err != nil || t.stuck == "" {
		return "", err
	}
	return t.askToGoOn(ctx)
}

// nextRequest returns the next request to the model, and the tools that it offers.
func (t *modelTurn) nextRequest(ctx context.Context) (r llm.Request, box *toolbox, err error) {
	var set settings
	set, t.endpoint = t.current() // the user may have changed them since the last step
	for t.instead[t.endpoint] != nil {
		t.endpoint = t.instead[t.endpoint]
	}
	if box, err = t.newToolbox(ctx, set.Mode); err != nil {
		return r, nil, err
	}
	unoffered, err := box.noteUnoffered(ctx)
	if err != nil {
		return r, nil, err
	}
	r, err = t.fit(ctx, llm.Request{
		System: t.systemPrompt(set.Mode, t.endpoint, unoffered), Tools: box.offered,
		Effort: set.Effort,
	})
	return r, box, err
}

// conclude returns why the turn is done after an answer without tool calls, or "" if it is not
// done.
func (t *modelTurn) conclude(ctx context.Context, a answer, box *toolbox) (sdk.StopReason, error) {
	switch finish := a.finish; {
	case finish.Reason == llm.Paused:
		return "", nil
	case finish.Reason == llm.Length:
		return sdk.StopReasonMaxTokens, nil
	case finish.Reason == llm.Other:
		return sdk.StopReasonEndTurn, t.note(ctx, "\n\nThe model's server ended the answer with "+
			"the reason "+text.Code(text.Line(finish.Said, 100))+". Send another message to continue.")
	case finish.Reason == llm.CallsTools && !box.hasCall(a.said):
		return sdk.StopReasonEndTurn, t.note(ctx, "\n\nThe model's server says that the model "+
			"calls a tool, but has sent no call. Send another message to continue.")
	case strings.TrimSpace(a.said) == "":
		return sdk.StopReasonEndTurn, t.note(ctx,
			"\n\nThe model stopped without an answer. Send another message to continue.")
	default:
		return sdk.StopReasonEndTurn, t.noteUnread(ctx, a.said, box)
	}
}

// tell shows the user a message with an entry. Leading line breaks are shown only if the model has
// said something before.
func (t *modelTurn) tell(ctx context.Context, e entry, said string) error {
	if !t.spoke {
		said = strings.TrimLeft(said, "\n")
	}
	return t.updates.Update(ctx, message(e, said))
}

// note is tell for a text that the model does not see.
func (t *modelTurn) note(ctx context.Context, said string) error {
	return t.tell(ctx, entry{Note: true}, said)
}
