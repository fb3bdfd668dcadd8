package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/llm"
	"github.com/acp-agent/acp-agent/internal/text"
)

// fallBack changes to the model's fallback for the rest of the turn if a request has failed because
// the model is not available. It tells the user, and reports whether it has changed the model.
func (t *modelTurn) fallBack(ctx context.Context, err error) bool {
	failed, ok := errors.AsType[*llm.Error](err)
	next := t.backend.endpoint(t.endpoint.given.Fallback)
	if ctx.Err() != nil || !ok || next == nil || next == t.endpoint || t.instead[next] != nil ||
		failed.Kind != llm.Unreachable && failed.Kind != llm.Overloaded {
		return false
	}
	t.instead[t.endpoint] = next
	said := fmt.Sprintf("\n\n*%s. The model %s answers instead:*\n\n", describeFailure(failed),
		next.code())
	return t.tell(ctx, entry{Note: true, Retried: true}, said) == nil
}

// explain ends a turn in which a request to the model failed. It shows an answer that says why and
// what to do next. If the server does not accept the prompt, that and what followed it are left out
// of further requests. The response's _meta says that the model failed.
func (t *modelTurn) explain(ctx context.Context, err error) (backend.Raw, error) {
	failed, ok := errors.AsType[*llm.Error](err)
	if ctx.Err() != nil || !ok {
		return nil, err
	}
	rejected := failed.Kind == llm.Filtered || rejects(failed) && failed.Status != 0
	again := mayReject(failed) && t.conversation.wasRejected()
	e, next := entry{Note: true, Rejected: mayReject(failed)}, t.nextStep(failed.Kind)
	if rejected || again {
		e = entry{Refused: true, Rejected: true}
	}
	if rejected {
		next = " Later requests leave out your message. It remains in the history of the session."
		switch {
		case again:
		case failed.Kind == llm.Filtered:
			next += " Send another one to continue, or choose another model."
		default:
			next += " Send it again in another form, correct the configuration of model " +
				t.endpoint.code() + " if that is the reason, or choose another model."
		}
	}
	if again {
		next += " The message before failed too, so later requests leave out all messages that " +
			"the model has not answered. The cause may also be its last answer, which /undo takes " +
			"back with the message before it, images that another model accepted, the " +
			"instructions of a folder, a tool, or the configuration of model " + t.endpoint.code() +
			". Correct that, or choose another model."
	}
	return backend.FailedTurn(), t.tell(ctx, e, "\n\n"+describeFailure(failed)+"."+next)
}

// nextStep says what the user can do after a failure of a kind. It is "" for a conversation that is
// too long, because that error says it.
func (t *modelTurn) nextStep(kind llm.Kind) string {
	file := "the configuration file"
	if config := t.backend.given.Config; config != "" {
		file = text.Code(config)
	}
	correct := " Correct `models." + t.endpoint.given.ID + "` in " + file +
		", such as its `keyEnv` or `keyCommand`"
	const another, examine = " Send another message to try again, or choose another model.",
		" In a terminal, acp-agent doctor checks the server and the key."
	return map[llm.Kind]string{
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
	}[kind]
}

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
	case rejects(e), e.Kind == llm.Misconfigured, e.Kind == llm.Unpaid:
		return "The model's server rejected the request: " + said
	}
	return sentence(e)
}

// sentence returns an error as a sentence without its full stop.
func sentence(err error) string {
	s := strings.TrimRight(text.Plain(err.Error()), ". ")
	first, n := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(first)) + s[n:]
}

// maxExamined is how much of an answer is examined for what the server should have understood, in
// bytes.
const maxExamined = 8 << 10

// callMarks begin the tool calls of models, in the text that their servers read: those of Hermes
// and Qwen, Qwen Coder, Llama, Mistral, DeepSeek, Gemma, Kimi, GLM and Phi.
var callMarks = []string{"<tool_call>", "<function=", "<|python_tag|>", "[TOOL_CALLS]",
	"<｜tool▁call", "<|tool_call", "<function_call>", "<|tool_calls_section_begin|>", "<tool_use>",
	"```tool_code", "<invoke name="}

// noteUnread tells the user, once in a session, if the model's answer has calls or thoughts that
// its server should have separated from the text.
func (t *modelTurn) noteUnread(ctx context.Context, said string, box *toolbox) error {
	if t.notes.hinted {
		return nil
	}
	hint := ""
	switch {
	case box.hasCall(said):
		hint = "The model wrote a tool call as text, so nothing was run: its server does not read the " +
			"calls of this model. Start vLLM with --enable-auto-tool-choice and --tool-call-parser, " +
			"llama-server with --jinja, or choose a model that calls tools."
	case strings.Contains(said, "</think>") && !strings.Contains(said, "<think>"),
		strings.HasPrefix(strings.TrimSpace(said), "<thinking>"):
		hint = "What the model thought is in its answer, because its server does not separate it. " +
			"Start vLLM with --reasoning-parser, or llama-server with --reasoning-format."
	default:
		return nil
	}
	t.notes.hinted = true
	return t.note(ctx, "\n\n*"+hint+"*")
}

// hasCall reports whether a text is, or has, the call of a tool.
func (b *toolbox) hasCall(said string) bool {
	isIn := func(mark string) bool { return strings.Contains(said, mark) }
	isMarked := slices.ContainsFunc(callMarks, isIn)
	said = strings.ToLower(strings.TrimPrefix(strings.Trim(strings.TrimSpace(said), "`"), "json"))
	var call struct{ Arguments, Parameters json.RawMessage }
	_ = json.Unmarshal([]byte(said), &call)
	if !isMarked && call.Arguments == nil && call.Parameters == nil {
		return false
	}
	for name := range b.byName {
		if strings.Contains(said, strings.ToLower(name)) {
			return true
		}
	}
	return false
}
