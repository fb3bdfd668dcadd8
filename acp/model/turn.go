package model

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/llm"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// maxSteps is how many requests one turn sends to the model.
const maxSteps = 200

// turn answers one prompt.
type turn struct {
	*session
	updates  backend.Updates // what they show becomes part of the conversation
	endpoint *endpoint       // of the model that the user has chosen for this step
	steps    int             // requests that were sent to the model
	spoke    bool            // it has said something

	uncompacted int // the first step in which the conversation may be summarised again

	pictured atomic.Int64 // bytes of images that tools have shown the model

	judging  sync.Mutex                // calls can end at the same time
	failures map[[sha256.Size]byte]int // how often a call has failed in the same way
	stuck    string                    // the title of a call that has failed too often, or ""
}

// run answers the prompt.
func (t *turn) run(ctx context.Context, params backend.Raw) (backend.Raw, error) {
	if err := t.announceCommands(ctx, t.updates); err != nil {
		return nil, err
	}
	_, t.endpoint = t.current()
	slash, err := t.prompt(ctx, params)
	if err != nil {
		return nil, err
	}
	if slash.Name == compactCommand {
		return t.compact(ctx, slash.Arguments)
	}
	for range maxSteps {
		reason, err := t.step(ctx)
		if err == nil && reason != "" {
			err = t.announceCommands(ctx, t.updates) // with prompts that are known now
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
// turn is done, "" if it is not.
func (t *turn) step(ctx context.Context) (sdk.StopReason, error) {
	t.steps++
	var set settings
	set, t.endpoint = t.current() // the user may have changed them since the last step
	tools, err := t.newToolbox(ctx, set.Mode)
	if err != nil {
		return "", err
	}
	request, err := t.fit(ctx, llm.Request{
		System: t.systemPrompt(set.Mode), Tools: tools.tools, Effort: set.Effort,
	})
	if err != nil {
		return "", err
	}
	calls, finish, err := t.showAnswer(ctx, request)
	if err != nil {
		return "", t.shorten(ctx, err)
	}
	if err := t.showUsage(ctx, finish.Usage); err != nil {
		return "", err
	}
	if finish.Reason == llm.Refused {
		return sdk.StopReasonRefusal, t.showRefusal(ctx)
	}
	if len(calls) > 0 {
		err := tools.run(ctx, calls)
		if err != nil || t.stuck == "" {
			return "", err
		}
		return sdk.StopReasonEndTurn, t.note(ctx, fmt.Sprintf(
			"\n\nStopped, because the same call has failed in the same way %d times: %s. "+
				"Send another message that says what to do instead.", stopAfter, t.stuck))
	}
	switch {
	case finish.Reason == llm.Length:
		return sdk.StopReasonMaxTokens, nil
	case t.steps == 1 && !t.spoke:
		return sdk.StopReasonEndTurn, t.note(ctx,
			"The model stopped without an answer. Send another message to continue.")
	default:
		return sdk.StopReasonEndTurn, nil
	}
}

// showRefusal tells the user that the model has refused to answer. As ACP wants it, the prompt and
// what came after it are left out of what the model is sent with the next one, which it would
// mostly refuse too.
func (t *turn) showRefusal(ctx context.Context) error {
	return t.updates.Update(ctx, meta{Refused: true}.message(
		"\n\n*The model refused to answer. Your next prompt is sent without this one.*"))
}

// showAnswer sends a request and shows the answer as it arrives. It returns the answer's tool calls
// if the answer is complete.
func (t *turn) showAnswer(
	ctx context.Context, r llm.Request,
) (calls []llm.ToolCall, finish llm.Finish, err error) {
	for event, err := range t.endpoint.Stream(ctx, r) {
		if err != nil {
			return nil, finish, err
		}
		switch e := event.(type) {
		case llm.TextDelta:
			t.spoke = true
			err = t.updates.Update(ctx, backend.Text(string(e)))
		case llm.ThinkingDelta:
			err = t.think(ctx, string(e))
		case llm.Thinking:
			err = t.updates.Update(ctx, thoughtUpdate(e))
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

// showUsage shows how much of the model's context is used, if the server has said it.
func (t *turn) showUsage(ctx context.Context, u llm.Usage) error {
	t.conversation.count(u.Input)
	if u.Input == 0 {
		return nil
	}
	size := t.endpoint.Model().ContextTokens
	return t.updates.Update(ctx, backend.NewUpdate(sdk.SessionUpdate{
		UsageUpdate: &sdk.SessionUsageUpdate{Used: u.Input + u.Output, Size: size},
	}))
}

// note shows the user a text that the model is not told. Line breaks before it are only shown after
// what the model has said.
func (t *turn) note(ctx context.Context, s string) error {
	if !t.spoke {
		s = strings.TrimLeft(s, "\n")
	}
	return t.updates.Update(ctx, backend.Note(s))
}

// think shows a piece of what the model thinks, or what is happening.
func (t *turn) think(ctx context.Context, s string) error {
	return t.updates.Update(ctx, backend.Thought(s))
}

// showRetry tells the user that a request will be sent again.
func (t *turn) showRetry(ctx context.Context, r llm.Retry) error {
	after := r.After.Round(100 * time.Millisecond)
	said := fmt.Sprintf("%s. Trying again in %s.\n\n", sentence(r.Err), after)
	return t.updates.Update(ctx,
		backend.MetaChunk(sessionstore.AgentThoughtChunk, said, meta{Note: true}))
}

// explain ends a turn in which a request to the model failed. The answer says why, and what to do
// next, and the _meta of the response that it failed.
func (t *turn) explain(ctx context.Context, err error) (backend.Raw, error) {
	failed, ok := errors.AsType[*llm.Error](err)
	if ctx.Err() != nil || !ok {
		return nil, err
	}
	correct := " Correct the configuration of model " + text.Code(t.endpoint.Model().ID)
	const examine = " In a terminal, acp-agent doctor checks the server and the key."
	next := map[llm.Kind]string{ // the error of a conversation that is too long says it itself
		llm.Unreachable: " Send another message to continue." + examine,
		llm.KeyRejected: correct + ", then send another message to continue." + examine,
		llm.Overloaded:  " Wait a moment, then send another message, or choose another model.",
		llm.Rejected:    correct + ", or choose another model.",
		llm.Malformed:   correct + ", or choose another model.",
	}[failed.Kind]
	said := sentence(failed)
	if failed.Kind == llm.Rejected && failed.Status != 0 && failed.Status != http.StatusNotFound {
		said = "The model's server rejected the request: " + said // its own words
	}
	return failedTurn(), t.note(ctx, "\n\n"+said+"."+next)
}

// failedTurn returns the result of a prompt that the model could not answer, after an answer that
// says why.
func failedTurn() backend.Raw {
	return backend.Encode(sdk.PromptResponse{
		StopReason: sdk.StopReasonEndTurn, Meta: meta{Failed: true}.encode(),
	})
}

// sentence returns an error as a sentence without its full stop.
func sentence(err error) string {
	s := strings.TrimRight(text.Plain(err.Error()), ". ")
	first, n := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(first)) + s[n:]
}
