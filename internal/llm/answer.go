package llm

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/acp-agent/acp-agent/internal/text"
)

// Limits on answers, because servers and models do not always stop.
const (
	// maxAnswer limits the text, thinking and arguments of tool calls in an answer, in bytes.
	maxAnswer = 8 << 20
	// maxCalls limits the tool calls of an answer.
	maxCalls = 128
	// maxParts limits the parts that are read of a message in one event.
	maxParts = 256
	// maxNesting is how deep arguments of tool calls may be nested. Many clients cannot read JSON
	// with more than 128 levels.
	maxNesting = 64
	// maxTokenCount is the largest number of tokens that is plausible.
	maxTokenCount = 1 << 30
)

// answer is what has arrived of an answer. A [decoder] says by its methods what the events of a
// stream mean, and they make the events for the caller.
type answer struct {
	origin string  // of the model
	events []Event // that have not been yielded
	// began is set when something has arrived, and done when the server has said that the answer is
	// complete. reason says why, in the server's words.
	began, done bool
	reason      string
	refused     bool // the model refuses to answer
	spoke       bool // some text has arrived
	usage       Usage

	thought strings.Builder // since the last one that was kept
	calls   []*pendingCall  // in the order in which they began
	called  bool            // one is complete
	held    *pendingCall    // may have been cut off by the limit of tokens
	// bytes are those of text, thinking and arguments. news counts only those that the model itself
	// has written, and other progress.
	bytes, news int
}

// pendingCall is a tool call that is arriving.
type pendingCall struct {
	index     int // the server's number
	id, name  string
	arguments []byte
	attached  []json.RawMessage // pieces of ToolCall.Attached
	ended     bool
}

// wrote counts bytes that the model has written.
func (a *answer) wrote(n int) {
	a.bytes += n
	a.news += n
}

// say adds a piece of the answer's text.
func (a *answer) say(text string) {
	if text != "" {
		a.release()
		a.spoke = true
		a.wrote(len(text))
		a.events = append(a.events, TextDelta(text))
	}
}

// think adds a piece of what the model thinks.
func (a *answer) think(text string) {
	if text != "" {
		a.release()
		a.wrote(len(text))
		a.thought.WriteString(text)
		a.events = append(a.events, ThinkingDelta(text))
	}
}

// thoughts returns what the model has thought since thoughts were last returned.
func (a *answer) thoughts() string {
	defer a.thought.Reset()
	return a.thought.String()
}

// keep adds a thought as it must be sent back.
func (a *answer) keep(t Thinking) {
	a.release()
	a.bytes += len(t.Attached)
	t.From = a.origin
	a.events = append(a.events, t)
}

// begin adds a tool call.
func (a *answer) begin(index int, id, name string) *pendingCall {
	a.release()
	c := &pendingCall{index: index, id: id, name: name}
	a.calls = append(a.calls, c)
	return c
}

// open returns the last call with this number or ID that has not ended, or nil. An ID of "" is not
// compared.
func (a *answer) open(index int, id string) *pendingCall {
	for _, c := range slices.Backward(a.calls) {
		if !c.ended && (c.index == index || id != "" && c.id == id) {
			return c
		}
	}
	return nil
}

// argue adds a piece of the arguments of a call.
func (a *answer) argue(c *pendingCall, piece string) {
	a.wrote(len(piece))
	c.arguments = append(c.arguments, piece...)
	a.events = append(a.events, CallDelta{slices.Index(a.calls, c), c.name, piece})
}

// finish ends a call. It is held back if its arguments are not complete.
func (a *answer) finish(c *pendingCall) {
	a.release()
	c.ended, c.arguments = true, bytes.TrimSpace(c.arguments)
	if a.held = c; json.Valid(c.arguments) {
		a.release()
	}
}

// release adds the call that was held back, because more has arrived after it.
func (a *answer) release() {
	if a.held == nil {
		return
	}
	id := rand.Text()[:9] // some models only accept nine letters and digits
	call := ToolCall{ID: cmp.Or(a.held.id, id), Name: a.held.name, From: a.origin,
		Arguments: cmp.Or(string(a.held.arguments), "{}"), Attached: joinMembers(a.held.attached)}
	a.events, a.held, a.called = append(a.events, call), nil, true
}

// count notes how many tokens there were. All counts are totals, but not every server sends all of
// them each time.
func (a *answer) count(t tokens) {
	u, larger := t.usage(), func(a, b int) int { return min(max(a, b), maxTokenCount) }
	a.usage = Usage{larger(a.usage.Input, u.Input), larger(a.usage.Cached, u.Cached),
		larger(a.usage.Output, u.Output)}
}

// tokens are the counts of tokens under the names of all formats.
type tokens struct {
	Prompt        int `json:"prompt_tokens"`
	Completion    int `json:"completion_tokens"`
	Total         int `json:"total_tokens"`
	Input         int `json:"input_tokens"` // in Anthropic's, without the next two
	Written       int `json:"cache_creation_input_tokens"`
	Read          int `json:"cache_read_input_tokens"`
	Output        int `json:"output_tokens"`
	PromptDetails struct {
		Cached int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	InputDetails struct {
		Cached int `json:"cached_tokens"`
	} `json:"input_tokens_details"`
	Cached   int `json:"cached_tokens"`           // Kimi's
	CacheHit int `json:"prompt_cache_hit_tokens"` // DeepSeek's
}

// usage returns what t counts. Some servers count thoughts only in the total.
func (t tokens) usage() Usage {
	input := max(t.Prompt, t.Input+t.Written+t.Read)
	return Usage{
		Input:  input,
		Cached: max(t.PromptDetails.Cached, t.InputDetails.Cached, t.Cached, t.CacheHit, t.Read),
		Output: max(t.Completion, t.Output, t.Total-input),
	}
}

// reasons are the reasons of servers in all formats.
var reasons = map[string]Reason{
	"": Stopped, "stop": Stopped, "eos": Stopped, "end_turn": Stopped, "stop_sequence": StopText,
	"tool_calls": CallsTools, "function_call": CallsTools, "tool_use": CallsTools,
	"length": Length, "max_tokens": Length, "model_length": Length, "max_output_tokens": Length,
	"model_context_window_exceeded": Length,
	"content_filter":                Refused, "refusal": Refused, "pause_turn": Paused,
}

// end adds the [Finish] when the stream has ended or the connection was lost. It fails if the
// answer is not complete.
func (a *answer) end() *failure {
	switch {
	case !a.began:
		return &failure{why: errEmpty, retry: true}
	case !a.done && a.reason == "":
		return &failure{why: errCut, retry: true}
	case a.reason == "error":
		why := &Error{Kind: Rejected, Message: "the server reports that the answer failed"}
		return &failure{why: why}
	}
	finish := Finish{Reason: reasons[a.reason], Usage: a.usage}
	if a.refused {
		finish.Reason = Refused
	}
	switch finish.Reason {
	case "":
		finish.Reason, finish.Said = Other, a.reason
		if a.called {
			finish.Reason = CallsTools
		}
	case Length, Refused:
	default:
		if a.release(); a.called {
			finish.Reason = CallsTools
		}
	}
	a.events = append(a.events, finish)
	return nil
}

// check fails if more has arrived than the limits allow.
func (a *answer) check() *failure {
	switch {
	case len(a.calls) > maxCalls:
		return tooMuch(fmt.Sprintf("it calls more than %d tools at once", maxCalls))
	case a.bytes > maxAnswer:
		return tooMuch("it is longer than " + text.Size(maxAnswer))
	}
	return nil
}

// tooMuch returns the failure of an answer that exceeds a limit.
func tooMuch(why string) *failure {
	message := "the model's answer was stopped, because " + why
	return &failure{why: &Error{Kind: Malformed, Message: message}}
}
