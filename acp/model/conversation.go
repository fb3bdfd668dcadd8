package model

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/mcp"
	"github.com/acp-agent/acp-agent/acp/prompts"
	"github.com/acp-agent/acp-agent/internal/llm"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// conversation holds what the model knows of a session. It is built only from the session's
// updates: from those of a turn as they are shown, and from the stored ones when the session is
// opened. So a model knows the same after a restart, except for media in results of tools.
type conversation struct {
	knowledge
	past       []pastPrompt // oldest first
	summarised int          // how many of them came before the last summary
}

// knowledge is the content of a conversation.
type knowledge struct {
	// messages are those for the model. Each prompt begins one, even after another of the user.
	messages []llm.Message

	step    int                       // of the tool calls that end the last message, see entry
	results map[string]llm.ToolResult // of these calls, by ID
	pending []*pendingPart            // of the answer that has begun
	blocks  []backend.Raw             // of a stored prompt that may have more
	prompt  []llm.Part                // of the last prompt
	ignored bool                      // the model does not see the prompt, or what follows it

	rejected bool // the server has not accepted the last request

	budget budget
}

// pendingPart is a thought or a text that comes after some calls of its answer. A text can grow.
type pendingPart struct {
	after   int
	thought *llm.Thinking // nil for a text
	text    strings.Builder
}

// restore returns the conversation in the stored history of the session, and the history's length.
// The first foreign updates are from another agent. Their _meta is ignored, because with it that
// agent could tell the model something that the user does not see. If a turn of an earlier
// activation is running, it ends first.
func restore(
	ctx context.Context, a backend.Activation, foreign int,
) (c conversation, n int, err error) {
	if a.History == nil {
		return c, 0, nil
	}
	if a.Stop != nil {
		if err := a.Stop(ctx); err != nil {
			return c, 0, err
		}
	}
	for u, err := range a.History {
		if err != nil {
			return c, n, err
		}
		c.apply(u, n < foreign)
		n++
	}
	c.endPrompt()
	return c, n, nil
}

// content is the content of an update.
type content struct {
	Content    json.RawMessage
	ToolCallID string
	Status     string
	RawInput   json.RawMessage
	RawOutput  json.RawMessage
}

// apply adds what an update says, without its entry if it is foreign.
func (c *conversation) apply(u backend.Update, foreign bool) {
	if u.Kind != sessionstore.UserMessageChunk {
		c.endPrompt()
	}
	switch u.Kind {
	case sessionstore.UserMessageChunk, sessionstore.AgentMessageChunk, sessionstore.ToolCall,
		sessionstore.ToolCallUpdate:
	case sessionstore.AgentThoughtChunk:
		if !bytes.Contains(u.Raw, []byte(`"_meta"`)) {
			return // what is shown while the model thinks
		}
	default:
		return
	}
	var said content
	body := u.Body()
	if json.Unmarshal(body, &said) != nil {
		return
	}
	if u.Kind == sessionstore.UserMessageChunk {
		c.blocks = append(c.blocks, said.Content)
		return
	}
	var e entry
	if !foreign {
		e = entryOf(protocol.FindOurs(body))
	}
	switch {
	case e.Undone:
		c.forget()
	case e.Summary != "":
		c.startOver(e)
	case e.Refused:
		c.leaveOutPrompt(e.Rejected)
	case e.WithoutMedia:
		c.leaveOutMedia()
	case e.WithoutThoughts:
		c.forgetThoughts()
	case !c.ignored:
		c.continueWith(u.Kind, said, e)
	}
	if e.Rejected {
		c.endMessage()
		c.rejected = true
	}
}

// continueWith adds the content of an update that the model sees.
func (c *conversation) continueWith(kind sessionstore.Kind, said content, e entry) {
	var output struct{ Text *string }
	_ = json.Unmarshal(said.RawOutput, &output) // others may have another form
	switch {
	case e.Retried:
		c.pending = nil
		last := len(c.messages) - 1
		if last >= 0 && c.results == nil && c.messages[last].Role == llm.Assistant {
			c.messages = c.messages[:last]
		}
	case e.Note:
	case e.Thought != nil:
		c.endCalls()
		c.pending = append(c.pending, &pendingPart{after: e.After, thought: e.Thought})
	case e.Prompt && output.Text != nil:
		c.prompt = append(c.prompt, llm.Text(*output.Text))
		c.add(llm.User, llm.Text(*output.Text))
	case kind == sessionstore.AgentMessageChunk:
		c.say(e.After, said.Content)
	default:
		if e.Tool != "" {
			c.addCall(e.Step, llm.ToolCall{
				ID: said.ToolCallID, Name: e.Tool, Arguments: argumentsOf(said.RawInput),
				From: e.From, Given: e.Given, Attached: e.Attached,
			})
		}
		c.updateCall(said.ToolCallID, said.Status, output.Text)
	}
}

// argumentsOf returns a tool call's arguments, given its rawInput. If they are not JSON, that is a
// string.
func argumentsOf(input json.RawMessage) string {
	var malformed string
	if json.Unmarshal(input, &malformed) == nil {
		return malformed
	}
	var b bytes.Buffer
	_ = json.Compact(&b, input) // it is valid
	return b.String()
}

// addCall adds a tool call.
func (c *conversation) addCall(step int, call llm.ToolCall) {
	if step != c.step {
		c.endCalls()
	}
	c.endParts(len(c.results))
	c.add(llm.Assistant, call)
	if c.results == nil {
		c.results = make(map[string]llm.ToolResult)
	}
	c.step = step
	none := []llm.Part{llm.Text(interrupted)}
	c.results[call.ID] = llm.ToolResult{ID: call.ID, Failed: true, Content: none}
}

// interrupted is the result for the model of a tool call that has no result.
const interrupted = "The call was interrupted. It is not known whether it had an effect."

// notRun is the result of a call that was cancelled before it began, such as at its question.
const notRun = "The call did not run: the turn ended before."

// updateCall stores the status and the result of a tool call if an update has them.
func (c *conversation) updateCall(id, status string, output *string) {
	r, known := c.results[id]
	if !known {
		return
	}
	if status == "completed" || status == "failed" {
		r.Failed = status == "failed"
	}
	if output != nil {
		r.Content = []llm.Part{llm.Text(*output)}
	}
	c.results[id] = r
}

// say adds a message of the model, which comes after some calls of its answer.
func (c *conversation) say(after int, message json.RawMessage) {
	var block struct{ Text string }
	_ = json.Unmarshal(message, &block)
	c.endCalls()
	last := len(c.pending) - 1
	if last < 0 || c.pending[last].after != after || c.pending[last].thought != nil {
		c.pending = append(c.pending, &pendingPart{after: after})
		last++
	}
	c.pending[last].text.WriteString(block.Text)
}

// endCalls adds the results of the tool calls in the last message, in the order of the calls.
func (c *conversation) endCalls() {
	if len(c.results) == 0 {
		return
	}
	c.endParts(maxAfter)
	for _, p := range c.messages[len(c.messages)-1].Parts {
		if call, ok := p.(llm.ToolCall); ok {
			c.add(llm.User, c.results[call.ID])
		}
	}
	c.results = nil
}

// maxAfter is more than the calls of any answer.
const maxAfter = math.MaxInt

// endParts adds the parts that come after so many calls, or fewer. Calls are shown after the whole
// answer, but some servers want its parts back in the order in which they came. Texts of white
// space are dropped, because servers reject them.
func (c *conversation) endParts(after int) {
	for len(c.pending) > 0 && c.pending[0].after <= after {
		p := c.pending[0]
		c.pending = c.pending[1:]
		switch said := p.text.String(); {
		case p.thought != nil:
			c.add(llm.Assistant, *p.thought)
		case strings.TrimSpace(said) != "":
			c.add(llm.Assistant, llm.Text(said))
		}
	}
}

// endMessage completes the last message.
func (c *conversation) endMessage() {
	c.endCalls()
	c.endParts(maxAfter)
}

// endPrompt adds the prompt whose blocks have been collected.
func (c *conversation) endPrompt() prompts.Command {
	if len(c.blocks) == 0 {
		return prompts.Command{}
	}
	c.endMessage()
	parts, call := promptParts(c.blocks)
	c.blocks = nil
	before := c.knowledge
	c.prompt, c.ignored = parts, isBuiltin(call)
	c.addMessage(llm.User, parts...)
	c.remember(before)
	return call
}

// startOver replaces the conversation with a summary. To free memory, prompts before the summary
// that preceded it can no longer be undone.
func (c *conversation) startOver(e entry) {
	c.past = slices.Clone(c.past[min(c.summarised, len(c.past)):])
	c.summarised = len(c.past)
	c.messages, c.results, c.pending = nil, nil, nil
	c.budget = budget{}
	c.addMessage(llm.User, llm.Text(summaryIntroduction+e.Summary))
	if e.Keep {
		c.addMessage(llm.User, c.prompt...)
	}
}

// addMessage adds a message, unless it is empty.
func (c *conversation) addMessage(role llm.Role, parts ...llm.Part) {
	if len(parts) > 0 {
		c.messages = append(c.messages, llm.Message{Role: role, Parts: slices.Clone(parts)})
	}
}

// add adds a part to the last message, or to a new one if that has another role.
func (c *conversation) add(role llm.Role, part llm.Part) {
	c.rejected = c.rejected && role != llm.Assistant
	if last := len(c.messages) - 1; last >= 0 && c.messages[last].Role == role {
		c.messages[last].Parts = append(c.messages[last].Parts, part)
		return
	}
	c.addMessage(role, part)
}

// unanswered returns the messages at the end that the model has not answered.
func unanswered(messages []llm.Message) []llm.Message {
	first := len(messages)
	for first > 0 && messages[first-1].Role == llm.User {
		first--
	}
	return messages[first:]
}

// lockedConversation is the conversation of a session, in which tools that run at the same time
// show updates. It is safe for concurrent use.
type lockedConversation struct {
	mu    sync.Mutex
	known conversation
}

// addPrompt adds a prompt. It returns the slash command that it calls, if any.
func (c *lockedConversation) addPrompt(blocks []backend.Raw) prompts.Command {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known.blocks = blocks; len(blocks) == 0 {
		c.known.blocks = []backend.Raw{backend.Raw(`{"type":"text","text":""}`)}
	}
	return c.known.endPrompt()
}

// setResult replaces the result of a tool call by one with media.
func (c *lockedConversation) setResult(r llm.ToolResult) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.known.results[r.ID]; known {
		c.known.results[r.ID] = r
	}
}

// request adds the messages to a request: see [budget.fit].
func (c *lockedConversation) request(r llm.Request, m llm.Model, least int) (llm.Request, int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known.endMessage()
	return c.known.budget.fit(r, c.known.messages, m, least)
}

// count notes how many tokens the server has counted in the last request.
func (c *lockedConversation) count(tokens int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known.budget.count(tokens)
}

// undoable returns the prompts that /undo takes back.
func (c *lockedConversation) undoable() []pastPrompt {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.known.undoable())
}

// endsWithMedia reports whether there are images or documents that the model has not answered.
func (c *lockedConversation) endsWithMedia() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known.endMessage()
	return slices.ContainsFunc(unanswered(c.known.messages), func(m llm.Message) bool {
		return slices.ContainsFunc(m.Parts, llm.HasMedia)
	})
}

// wasRejected reports whether the server has not accepted the last request of the turn before.
func (c *lockedConversation) wasRejected() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.known.rejected
}

// isNew reports whether the conversation consists only of the user's last message.
func (c *lockedConversation) isNew() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.known.messages) == 1
}

// transcript returns the complete messages of the conversation as text, with long results
// shortened. With a prefix it has only what is about the tools of that MCP server.
func (c *lockedConversation) transcript(prefix string, servers []mcp.Status) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	messages := c.known.messages
	if prefix != "" {
		messages = callsOf(prefix, servers, messages)
	}
	return c.known.budget.transcribe(messages)
}

// recorded shows updates and adds them to the conversation.
type recorded struct {
	backend.Updates
	conversation *lockedConversation
}

// Update implements [backend.Updates].
func (r recorded) Update(ctx context.Context, u backend.Update) error {
	return r.add(ctx, u, r.Updates.Update)
}

// Commit implements [backend.Updates].
func (r recorded) Commit(ctx context.Context, u backend.Update) error {
	return r.add(ctx, u, r.Updates.Commit)
}

func (r recorded) add(
	ctx context.Context, u backend.Update, send func(context.Context, backend.Update) error,
) error {
	r.conversation.mu.Lock()
	defer r.conversation.mu.Unlock()
	if err := send(ctx, u); err != nil {
		return err
	}
	r.conversation.known.apply(u, false)
	return nil
}
