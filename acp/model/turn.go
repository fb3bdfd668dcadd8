package model

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
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
	"github.com/acp-agent/acp-agent/internal/strictjson"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// maxSteps is how many requests one turn sends to the model.
const maxSteps = 200

// turn answers one prompt.
type turn struct {
	*session
	updates  backend.Updates // shown updates become part of the conversation
	endpoint *endpoint       // of the model that the user has chosen for this step
	steps    int             // requests that were sent to the model
	used     llm.Usage       // in all requests
	// instead maps models that cannot answer in this turn to their fallbacks.
	instead  map[*endpoint]*endpoint
	spoke    bool // it has said something
	answered bool // it has said something in answer to the last request

	accepted  bool       // the server has accepted the last request
	rejection *llm.Error // of the request that is sent again without parts of it
	trial     omission   // what it is sent without
	untried   []omission // what else can be left out of it
	omissions int        // how often something was left out for good
	alone     bool       // the prompt was rejected without the turns before it too

	uncompacted int // the first step in which the conversation may be summarised again

	pictured atomic.Int64 // bytes of media that tools have shown the model

	judging  sync.Mutex                // calls can end at the same time
	failures map[[sha256.Size]byte]int // how often a call has failed in the same way
	// successes are how often a call had the same result since the last change of a file.
	successes map[[sha256.Size]byte]int
	stuck     *loop // the call that was made too often, nil for none

	said strings.Builder // the beginning of the last answer
}

// run answers the prompt.
func (t *turn) run(ctx context.Context, params backend.Raw) (backend.Raw, error) {
	if err := t.announceCommands(ctx, t.updates); err != nil {
		return nil, err
	}
	_, t.endpoint = t.current()
	t.conversation.try(omission{})
	slash, err := t.prompt(ctx, params)
	if err != nil {
		return nil, err
	}
	if c, own := ownCommand(slash); own {
		return c.run(t, ctx, slash.Arguments)
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
func (t *turn) step(ctx context.Context) (sdk.StopReason, error) {
	t.steps++
	var set settings
	set, t.endpoint = t.current() // the user may have changed them since the last step
	for t.instead[t.endpoint] != nil {
		t.endpoint = t.instead[t.endpoint]
	}
	tools, err := t.newToolbox(ctx, set.Mode)
	if err != nil {
		return "", err
	}
	if err := tools.noteUnoffered(ctx); err != nil {
		return "", err
	}
	request, err := t.fit(ctx, llm.Request{
		System: t.systemPrompt(set.Mode, t.endpoint), Tools: tools.tools, Effort: set.Effort,
	})
	if err != nil {
		return "", err
	}
	request.CallDeltas = true
	calls, finish, err := t.showAnswer(ctx, request, tools)
	if err == nil {
		err = tools.noteUnoffered(ctx) // the server may have rejected some
	}
	if err != nil {
		return "", errors.Join(tools.dropDrafts(ctx), t.leaveOut(t.shorten(ctx, err)))
	}
	if err := t.showUsage(ctx, finish.Usage); err != nil {
		return "", err
	}
	if len(calls) == 0 {
		if err := tools.dropDrafts(ctx); err != nil {
			return "", err
		}
	}
	if finish.Reason == llm.Refused {
		return sdk.StopReasonRefusal, t.showRefusal(ctx)
	}
	if len(calls) > 0 {
		if err := tools.run(ctx, calls); err != nil || t.stuck == nil {
			return "", err
		}
		return t.askToGoOn(ctx)
	}
	switch {
	case finish.Reason == llm.Paused:
		return "", nil
	case finish.Reason == llm.Length:
		return sdk.StopReasonMaxTokens, nil
	case finish.Reason == llm.Other:
		return sdk.StopReasonEndTurn, t.note(ctx, "\n\nThe model's server ended the answer with "+
			"the reason "+text.Code(text.Line(finish.Said, 100))+". Send another message to continue.")
	case !t.answered:
		return sdk.StopReasonEndTurn, t.note(ctx,
			"\n\nThe model stopped without an answer. Send another message to continue.")
	default:
		return sdk.StopReasonEndTurn, t.noteUnread(ctx, tools)
	}
}

// showRefusal tells the user that the model has refused to answer. As ACP requires, the prompt and
// everything after it are not sent with the next prompt. With them the model would usually refuse
// that too.
func (t *turn) showRefusal(ctx context.Context) error {
	return t.updates.Update(ctx, meta{Refused: true}.message(
		"\n\n*The model refused to answer. Your next prompt is sent without this one.*"))
}

// showAnswer sends a request and shows the answer as it arrives. It returns the answer's tool calls
// if the answer is complete.
func (t *turn) showAnswer(
	ctx context.Context, r llm.Request, tools *toolbox,
) (calls []llm.ToolCall, finish llm.Finish, err error) {
	shown := false // some of its text
	t.accepted, t.answered = false, false
	t.said.Reset()
	for event, err := range t.endpoint.Stream(ctx, r) {
		if _, again := event.(llm.Retry); err == nil && !again && !t.accepted {
			err = t.accept(ctx)
		}
		if err != nil {
			return nil, finish, err
		}
		switch e := event.(type) {
		case llm.TextDelta:
			t.spoke, shown = true, true
			if t.said.Len() < maxExamined {
				t.said.WriteString(string(e))
			}
			t.answered = t.answered || strings.TrimSpace(string(e)) != ""
			err = t.updates.Update(ctx, saidUpdate(string(e), len(calls)))
		case llm.ThinkingDelta:
			err = t.think(ctx, string(e))
		case llm.Thinking:
			err = t.updates.Update(ctx, thoughtUpdate(e, len(calls)))
		case llm.ToolCall:
			calls = append(calls, e)
		case llm.CallDelta:
			err = tools.drafted(ctx, e)
		case llm.Retry:
			tools.restartDrafts()
			err = t.showRestart(ctx, e, shown)
			calls, shown, t.answered = nil, false, false
			t.said.Reset()
		case llm.Finish:
			finish = e
		}
		if err != nil {
			return nil, finish, err
		}
	}
	return calls, finish, nil
}

// showUsage shows how much of the model's context is used, if the server has reported that, and
// what the session has cost.
func (t *turn) showUsage(ctx context.Context, u llm.Usage) error {
	t.conversation.count(u.Input)
	cost, err := t.pay(ctx, u)
	if err != nil || u.Input == 0 {
		return err
	}
	size := t.endpoint.Model().ContextTokens
	return t.updates.Update(ctx, backend.NewUpdate(sdk.SessionUpdate{
		UsageUpdate: &sdk.SessionUsageUpdate{Used: u.Input + u.Output, Size: size, Cost: cost},
	}))
}

// spend adds what a request has cost to the costs of the session. It returns those in the currency
// of the model, nil if its prices are not known.
func (s *session) spend(ctx context.Context, m llm.Model, u llm.Usage) (*sdk.Cost, error) {
	if m.Prices == nil {
		return nil, nil
	}
	cost := m.Prices.Cost(u)
	s.mu.Lock()
	costs := maps.Clone(s.settings.Costs)
	if costs == nil {
		costs = map[string]float64{}
	}
	costs[m.Prices.Currency] += cost
	s.settings.Costs = costs
	s.mu.Unlock()
	shown := &sdk.Cost{Amount: costs[m.Prices.Currency], Currency: m.Prices.Currency}
	if cost == 0 {
		return shown, nil
	}
	_, err := s.saveSettings(ctx)
	return shown, err
}

// pay counts what a request of the turn has used. See spend.
func (t *turn) pay(ctx context.Context, u llm.Usage) (*sdk.Cost, error) {
	t.used.Input += u.Input
	t.used.Cached += min(u.Cached, u.Input)
	t.used.Output += u.Output
	return t.spend(ctx, t.endpoint.Model(), u)
}

// withUsage returns the response to the prompt with the tokens of the turn, if the server has
// reported any. They are in _meta, because the protocol's member usage is a draft.
func (t *turn) withUsage(response backend.Raw) backend.Raw {
	u := t.used
	if u == (llm.Usage{}) || response == nil {
		return response
	}
	usage := backend.Encode(sdk.Usage{
		InputTokens: u.Input - u.Cached, CachedReadTokens: &u.Cached, OutputTokens: u.Output,
		TotalTokens: u.Input + u.Output,
	})
	meta := strictjson.Find(response, "_meta")
	ours := strictjson.Set(strictjson.Find(meta, "acp-agent"), "usage", usage)
	return strictjson.Set(response, "_meta", strictjson.Set(meta, "acp-agent", ours))
}

// note shows the user a text that the model does not see. Leading line breaks are shown only if the
// model has said something before.
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
	return t.updates.Update(ctx, backend.MetaChunk(sessionstore.AgentThoughtChunk,
		describeRetry(r)+"\n\n", meta{Note: true}))
}

// showRestart tells the user that the request for an answer will be sent again. The text that was
// already shown, if any, stays visible with a mark. The model does not see it.
func (t *turn) showRestart(ctx context.Context, r llm.Retry, shown bool) error {
	retried := meta{Note: true, Retried: true}
	if !shown {
		return t.updates.Update(ctx, backend.MetaChunk(sessionstore.AgentThoughtChunk,
			describeRetry(r)+"\n\n", retried))
	}
	said := "\n\n*" + describeRetry(r) + " The answer starts over:*\n\n"
	return t.updates.Update(ctx, retried.message(said))
}

func describeRetry(r llm.Retry) string {
	after := r.After.Round(100 * time.Millisecond)
	return fmt.Sprintf("%s. Trying again in %s.", describeFailure(r.Err), after)
}

// fallBack changes to the model's fallback for the rest of the turn if a request has failed because
// the model is not available. It tells the user, and reports whether it has changed the model.
func (t *turn) fallBack(ctx context.Context, err error) bool {
	failed, ok := errors.AsType[*llm.Error](err)
	next := t.backend.endpoint(t.endpoint.Model().Fallback)
	if ctx.Err() != nil || !ok || next == nil || next == t.endpoint || t.instead[next] != nil ||
		failed.Kind != llm.Unreachable && failed.Kind != llm.Overloaded {
		return false
	}
	if t.instead == nil {
		t.instead = map[*endpoint]*endpoint{}
	}
	t.instead[t.endpoint] = next
	said := fmt.Sprintf("*%s. The model %s answers instead:*\n\n", describeFailure(failed),
		text.Code(next.Model().ID))
	if t.spoke {
		said = "\n\n" + said
	}
	return t.updates.Update(ctx, meta{Note: true, Retried: true}.message(said)) == nil
}

// explain ends a turn in which a request to the model failed. It shows an answer that says why and
// what to do next. The response's _meta says that the model failed.
func (t *turn) explain(ctx context.Context, err error) (backend.Raw, error) {
	failed, ok := errors.AsType[*llm.Error](err)
	if ctx.Err() != nil || !ok {
		return nil, err
	}
	if failed.Kind == llm.Filtered || failed.Kind == llm.Rejected && failed.Status != 0 {
		return t.reject(ctx, failed)
	}
	correct := " Correct the configuration of model " + codeOf(t.endpoint)
	const another, examine = " Send another message to try again, or choose another model.",
		" In a terminal, acp-agent doctor checks the server and the key."
	next := map[llm.Kind]string{ // the error about a conversation that is too long already says it
		llm.Unreachable: " Send another message to continue." + examine,
		llm.KeyRejected: correct + ", then send another message to continue." + examine,
		llm.Forbidden: " Check what your account may use at the provider, and from where, then send " +
			"another message, or choose another model.",
		llm.Slipped: another,
		llm.Unpaid: " Check your account at the provider, then send another message, or choose " +
			"another model.",
		llm.Overloaded:    " Send another message later, or choose another model.",
		llm.Rejected:      another, // the server had accepted the request
		llm.Misconfigured: correct + ", or choose another model.",
		llm.Malformed:     another + examine,
	}[failed.Kind]
	said := describeFailure(failed) + "." + next
	if t.spoke {
		said = "\n\n" + said
	}
	return failedTurn(), t.updates.Update(ctx,
		meta{Note: true, Rejected: mayReject(failed)}.message(said))
}

// codeOf returns the ID of a model in the user's configuration, as code.
func codeOf(e *endpoint) string { return text.Code(e.Model().ID) }

// describeFailure returns the error as a sentence without its full stop, which says who wrote the
// quoted words.
func describeFailure(e *llm.Error) string {
	said := strings.TrimRight(text.Plain(e.Error()), ". ")
	switch {
	case strings.HasPrefix(said, "the server "):
	case e.Status < http.StatusBadRequest && e.Kind != llm.Slipped && e.Kind != llm.Filtered:
	case e.Kind == llm.Overloaded:
		return "The model's server cannot answer now: " + said
	case e.Kind == llm.Filtered:
		return "The content filter of the model's server rejected the request: " + said
	case e.Kind == llm.Forbidden:
		return "The model's server does not allow the request: " + said
	case e.Kind == llm.Slipped:
		return "The model wrote a tool call that its server could not read: " + said
	case e.Kind == llm.Rejected, e.Kind == llm.Misconfigured, e.Kind == llm.Unpaid:
		return "The model's server rejected the request: " + said
	}
	return sentence(e)
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
