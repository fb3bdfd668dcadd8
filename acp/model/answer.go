package model

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/llm"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// answer is an answer of the model.
type answer struct {
	said   string // the beginning of its text
	calls  []llm.ToolCall
	finish llm.Finish
}

// showAnswer sends a request and shows the answer as it arrives.
func (t *modelTurn) showAnswer(ctx context.Context, r llm.Request, box *toolbox) (answer, error) {
	var a answer
	for event, err := range t.endpoint.Stream(ctx, r) {
		if err != nil {
			return a, err
		}
		switch e := event.(type) {
		case llm.TextDelta:
			t.spoke = true
			if len(a.said) < maxExamined {
				a.said += string(e)
			}
			said := backend.Text(string(e))
			if after := len(a.calls); after > 0 {
				said = message(entry{After: after}, string(e))
			}
			err = t.updates.Update(ctx, said)
		case llm.ThinkingDelta:
			err = t.think(ctx, string(e))
		case llm.Thinking:
			err = t.updates.Update(ctx, backend.MetaChunk(sessionstore.AgentThoughtChunk, "",
				entry{After: len(a.calls), Thought: &e}))
		case llm.ToolCall:
			a.calls = append(a.calls, e)
		case llm.CallDelta:
			err = box.draft(ctx, e)
		case llm.Retry:
			err = errors.Join(box.dropDrafts(ctx), t.showRestart(ctx, e, a))
			a = answer{}
		case llm.Finish:
			a.finish = e
		}
		if err != nil {
			return a, err
		}
	}
	return a, nil
}

// maxCollected bounds the answer that collect returns, in bytes.
const maxCollected = 256 << 10

// collect sends a request and returns the text of the answer, cut off if it is too long. It calls
// onRetry before it sends the request again.
func collect(
	ctx context.Context, from *llm.Client, r llm.Request, onRetry func(llm.Retry) error,
) (string, llm.Finish, error) {
	var answer strings.Builder
	var finish llm.Finish
	for event, err := range from.Stream(ctx, r) {
		switch event := event.(type) {
		case llm.TextDelta:
			answer.WriteString(string(event))
		case llm.Retry:
			answer.Reset()
			err = onRetry(event)
		case llm.Finish:
			finish = event
		}
		if err != nil {
			return "", finish, err
		}
		if answer.Len() > maxCollected {
			return text.Prefix(answer.String(), maxCollected), llm.Finish{Reason: llm.Length}, nil
		}
	}
	if finish.Reason == llm.Refused {
		return "", finish, errors.New("the model refuses to answer")
	}
	return answer.String(), finish, nil
}

// think shows a piece of what the model thinks, or what is happening.
func (t *modelTurn) think(ctx context.Context, s string) error {
	return t.updates.Update(ctx, backend.Thought(s))
}

// showRestart tells the user that the request for an answer will be sent again. If some text of it
// was already shown, that stays visible with a mark. The model does not see it.
func (t *modelTurn) showRestart(ctx context.Context, r llm.Retry, began answer) error {
	retried := entry{Note: true, Retried: true}
	if began.said == "" {
		return t.updates.Update(ctx, backend.MetaChunk(sessionstore.AgentThoughtChunk,
			describeRetry(r)+"\n\n", retried))
	}
	said := "\n\n*" + describeRetry(r) + " The answer starts over:*\n\n"
	return t.updates.Update(ctx, message(retried, said))
}

func describeRetry(r llm.Retry) string {
	after := r.After.Round(100 * time.Millisecond)
	return fmt.Sprintf("%s. Trying again in %s.", describeFailure(r.Err), after)
}

// showUsage shows how much of the model's context is used, if the server has reported that, and
// what the session has cost.
func (t *modelTurn) showUsage(ctx context.Context, u llm.Usage) error {
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
// of the prices, nil if these are not known.
func (s *modelSession) spend(ctx context.Context, prices *Prices, u llm.Usage) (*sdk.Cost, error) {
	if prices == nil {
		return nil, nil
	}
	set, cost, err := s.snapshot(), prices.cost(u), error(nil)
	if cost != 0 {
		set, err = s.change(ctx, func(set *settings) {
			costs := map[string]float64{}
			maps.Copy(costs, set.Costs)
			costs[prices.Currency] += cost
			set.Costs = costs
		})
	}
	return &sdk.Cost{Amount: set.Costs[prices.Currency], Currency: prices.Currency}, err
}

// pay counts what a request of the turn has used. See spend.
func (t *modelTurn) pay(ctx context.Context, u llm.Usage) (*sdk.Cost, error) {
	t.used.Input += u.Input
	t.used.Cached += min(u.Cached, u.Input)
	t.used.Output += u.Output
	return t.spend(ctx, t.endpoint.given.Prices, u)
}

// withUsage returns the response to the prompt with the tokens of the turn, if the server has
// reported any. They are in _meta, because the protocol's member usage is a draft.
func (t *modelTurn) withUsage(response backend.Raw) backend.Raw {
	u := t.used
	if u == (llm.Usage{}) || response == nil {
		return response
	}
	usage := backend.Encode(sdk.Usage{
		InputTokens: u.Input - u.Cached, CachedReadTokens: &u.Cached, OutputTokens: u.Output,
		TotalTokens: u.Input + u.Output,
	})
	return protocol.SetOurs(response, "usage", usage)
}
