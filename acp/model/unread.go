package model

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
)

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
