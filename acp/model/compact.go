package model

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/llm"
	"github.com/acp-agent/acp-agent/internal/text"
)

const (
	// summaryPause is the minimum of requests of a turn between two summaries.
	summaryPause = 8
	// summaryIntroduction precedes a summary in the message that replaces the conversation.
	summaryIntroduction = "[The conversation so far was replaced by this summary of it.]\n\n"
)

// fit adds the conversation to a request. If it is too long for the model, fit leaves out old
// results of tools. If that is not enough, it first lets the model summarise the conversation, and
// tells the user.
func (t *modelTurn) fit(ctx context.Context, r llm.Request) (llm.Request, error) {
	t.endpoint.AskWindow(ctx)
	model := t.endpoint.Model()
	limit := room(model)
	// The server has cached the beginning of the request, so saving a little is not worth it.
	fitted, tokens := t.conversation.request(r, model, limit/6)
	if tokens > limit*9/10 && t.steps >= t.uncompacted {
		if err := t.makeRoom(ctx); err != nil {
			return r, err
		}
	}
	if tokens > limit*9/10 {
		fitted, tokens = t.conversation.request(r, model, 0)
	}
	if tokens > limit {
		why := fmt.Sprintf("about %d tokens, of which instructions and tools are %d; "+
			"%d are possible, with room for the answer", tokens, estimate(r), limit)
		if estimate(r) > limit*3/4 {
			return r, &llm.Error{Kind: llm.TooLong, Message: "The instructions and tools do not fit into " +
				"the model's context (" + why + "). Choose a model with a larger context, or leave out " +
				"folders or MCP servers. If the model accepts more, set its contextTokens"}
		}
		return r, tooLong(why)
	}
	return fitted, nil
}

// tooLong tells the user what to do about a conversation that remains too long.
func tooLong(why string) error {
	return &llm.Error{Kind: llm.TooLong, Message: "The conversation is too long for the model (" +
		why + "). Send a shorter message, choose a model with a larger context, or start a new " +
		"session. If the model accepts more, set its contextTokens"}
}

// shorten is called with the error of a request. If the server says that the request is too long,
// shorten makes the conversation shorter and returns nil: it cuts new results that are large, or
// summarises the conversation, unless it has just been summarised.
func (t *modelTurn) shorten(ctx context.Context, err error) error {
	failed, ok := errors.AsType[*llm.Error](err)
	if !ok || failed.Kind != llm.TooLong {
		return err
	}
	if t.conversation.shortenNewest() {
		return nil
	}
	if t.steps < t.uncompacted {
		return tooLong(failed.Message)
	}
	return t.makeRoom(ctx)
}

// makeRoom summarises the conversation in the middle of a turn, unless there is only the user's
// message. If that fails, it is not tried again in this turn.
func (t *modelTurn) makeRoom(ctx context.Context) error {
	t.uncompacted = maxSteps + 1
	if t.conversation.isNew() {
		return nil
	}
	done, err := t.summarise(ctx, "", entry{Keep: true})
	if done {
		t.uncompacted = t.steps + summaryPause
	}
	return err
}

// compact answers /compact.
func (t *modelTurn) compact(ctx context.Context, focus string) (backend.Raw, error) {
	stopped := backend.Stopped(sdk.StopReasonEndTurn)
	if t.conversation.transcript("", nil) == "" {
		return stopped, t.note(ctx, "There is nothing to summarise yet.")
	}
	done, err := t.summarise(ctx, focus, entry{})
	if !done {
		stopped = backend.FailedTurn()
	}
	return stopped, err
}

// summarise lets the model summarise the conversation, and replaces that as e says. focus names
// what the user wants to keep, or is "". If the model fails, it tells the user, and leaves the
// conversation as it is.
func (t *modelTurn) summarise(ctx context.Context, focus string, e entry) (done bool, err error) {
	err = t.think(ctx, "Summarising the conversation, to make room for more.\n\n")
	if err != nil {
		return false, err
	}
	summary, err := t.askForSummary(ctx, focus)
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	if err != nil {
		return false, t.updates.Update(ctx, message(entry{Note: true}, "\n\nCannot summarise the "+
			"conversation, which was not changed: "+text.Plain(err.Error())+".\n\n"))
	}
	e.Summary = summary
	return true, t.updates.Update(ctx, message(e, "\n\n*The model continues with a summary of the "+
		"conversation so far.*\n\n"))
}

// smallTranscript is the size of a transcript, in bytes, that is not shortened further if the
// server says that it is too long.
const smallTranscript = 8 << 10

// askForSummary asks the model for a summary of the conversation, of a shorter transcript if the
// server says that it is too long.
func (t *modelTurn) askForSummary(ctx context.Context, focus string) (string, error) {
	if focus != "" {
		focus = " Keep in particular: " + focus
	}
	onRetry := func(r llm.Retry) error { return t.think(ctx, describeRetry(r)+"\n\n") }
	for most := 3 * room(t.endpoint.Model()); ; {
		transcript := text.Shorten(t.conversation.transcript("", nil), most)
		order := "This is the conversation:\n\n" + transcript + "Summarise it." + focus
		answer, finish, err := collect(ctx, t.endpoint.Client, llm.Request{
			System: summaryPrompt, Messages: []llm.Message{llm.UserText(order)}}, onRetry)
		if _, failed := t.pay(ctx, finish.Usage); err == nil {
			err = failed
		}
		summary := strings.TrimSpace(answer)
		if err == nil && summary == "" {
			err = errors.New("the model's answer is empty")
		}
		failed, ok := errors.AsType[*llm.Error](err)
		if !ok || failed.Kind != llm.TooLong || len(transcript) <= smallTranscript {
			return summary, err
		}
		most = len(transcript) / 2
	}
}

//go:embed summary.md
var summaryPrompt string
