package modelserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// refusal is an error in the words of the server that is imitated.
type refusal string

func (r refusal) Error() string { return string(r) }

func refuse(format string, args ...any) error { return refusal(fmt.Sprintf(format, args...)) }

// Names of models for which chat completions have further rules, those of the real ones.
const (
	// Gemini3 signs the first tool call of each answer, and rejects calls without the signature:
	// https://ai.google.dev/gemini-api/docs/thought-signatures
	Gemini3 = "gemini-3"
	// DeepSeekV4 rejects tool calls without what it thought before them, also those before the
	// user's last message: https://api-docs.deepseek.com/guides/thinking_mode
	DeepSeekV4 = "deepseek-v4"
	// KimiK2 numbers its tool calls, and needs these IDs back:
	// https://github.com/MoonshotAI/Kimi-K2/blob/main/docs/tool_call_guidance.md
	KimiK2 = "kimi-k2"
	// Mistral accepts no message of the user after the result of a tool, only IDs of nine letters
	// and digits, and no message of the model without content and calls:
	// https://github.com/mistralai/mistral-common/blob/main/src/mistral_common/protocol/instruct/validator.py
	Mistral = "mistral-large"
	// Devstral has a template that counts the messages of both sides without calls and results, as
	// in llama.cpp:
	// https://huggingface.co/mistralai/Mistral-7B-Instruct-v0.3/blob/main/tokenizer_config.json
	Devstral = "devstral"
	// GPT accepts at most 128 tools, whose arguments are objects without alternatives at the top:
	// https://github.com/langchain-ai/langchainjs/issues/9804. In responses it wants back what it
	// thought before its calls: https://developers.openai.com/api/docs/guides/reasoning
	GPT = "gpt-5.1"
	// Claude has the same rule for arguments:
	// https://github.com/anthropics/claude-code/issues/40075 It wants back what it thought before
	// its calls:
	// https://platform.claude.com/docs/en/build-with-claude/extended-thinking
	Claude = "claude-sonnet-5"
)

// checkTools checks the tools of a request.
func (r *Request) checkTools() error {
	if r.model != Gemini3 && r.model != GPT && r.model != Claude {
		return nil
	}
	if r.model == GPT && len(r.Tools) > 128 {
		return refuse("Invalid 'tools': array too long. Expected an array with maximum length "+
			"128, but got an array with length %d instead.", len(r.Tools))
	}
	for i, t := range r.Tools {
		if !toolName.MatchString(t.Name) {
			return refuse("Invalid 'tools[%d].function.name': string does not match pattern", i)
		}
		var schema object
		if err := json.Unmarshal(t.Schema, &schema); err != nil {
			return fmt.Errorf("tools.%d: %w", i, err)
		}
		if r.model == Gemini3 {
			if err := checkGemini(schema); err != nil {
				return refuse("Invalid JSON payload received. %v at 'tools[0]."+
					"function_declarations[%d].parameters': Cannot find field.", err, i)
			}
			continue
		}
		for _, member := range []string{"oneOf", "anyOf", "allOf", "enum", "not", "const", "$ref"} {
			if schema[member] != nil || schema["type"] != "object" {
				return refuse("Invalid schema for function '%s': schema must have type "+
					"'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level.",
					t.Name)
			}
		}
	}
	return nil
}

var toolName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$`)

// checkGemini returns an error if a schema has a member that is not in
// https://ai.google.dev/api/caching#Schema.
func checkGemini(schema object) error {
	for name, value := range schema {
		var parts []any
		switch name {
		case "description", "title", "format", "nullable", "enum", "required", "minimum", "maximum",
			"minItems", "maxItems", "minLength", "maxLength", "pattern":
		case "type":
			if _, text := value.(string); !text {
				return errors.New(`Unknown name "type"`)
			}
		case "items":
			parts = []any{value}
		case "anyOf":
			parts = value.([]any)
		case "properties":
			for _, property := range value.(object) {
				parts = append(parts, property)
			}
		default:
			return fmt.Errorf("Unknown name %q", name)
		}
		for _, part := range parts {
			schema, ok := part.(object)
			if !ok {
				return fmt.Errorf("invalid value %v", part)
			}
			if err := checkGemini(schema); err != nil {
				return err
			}
		}
	}
	return nil
}

// chatCall is a tool call in a message of a chat completion.
type chatCall struct {
	ID       string
	Function struct{ Name, Arguments string }
	Extra    json.RawMessage `json:"extra_content"`
}

// geminiSignature returns what Gemini attaches to a tool call with this ID.
func geminiSignature(id string) object {
	return object{"google": object{"thought_signature": "signed " + id}}
}

// kimiID returns Kimi's ID of a call, given how many there were before.
func kimiID(tool string, before int) string { return fmt.Sprintf("functions.%s:%d", tool, before) }

// checkCalls checks the tool calls of the next message of the model.
func (r *Request) checkCalls(of []chatCall, thought string) error {
	if len(of) == 0 {
		return nil
	}
	switch r.model {
	case Gemini3:
		want, _ := json.Marshal(geminiSignature(of[0].ID))
		skip := `{"google":{"thought_signature":"skip_thought_signature_validator"}}`
		if got := string(of[0].Extra); got != string(want) && got != skip {
			return fmt.Errorf("function call is missing a thought_signature in functionCall parts. "+
				"Additional data, function call %q", of[0].Function.Name)
		}
		for _, c := range of[1:] {
			if c.Extra != nil {
				return errors.New("only the first call of an answer is signed")
			}
		}
	case DeepSeekV4:
		if thought == "" {
			return errors.New(
				"the `reasoning_content` in the thinking mode must be passed back to the API")
		}
	case KimiK2:
		for i, c := range of {
			if want := kimiID(c.Function.Name, len(r.Of(Call))+i); c.ID != want {
				return fmt.Errorf("tool call id %q, want %q", c.ID, want)
			}
		}
	}
	return nil
}

// thoughtful begins the part of a call's ID after its prefix, if the model thought before the call.
const thoughtful = "t"

// checkItems checks the input of a request for a response. What was thought has to come back in
// encrypted form with what followed it, because nothing is stored.
func (r *Request) checkItems(items []responsesItem, store *bool) error {
	if r.model != GPT {
		return nil
	}
	if store == nil || *store {
		return errors.New("store: this organisation does not allow it")
	}
	var open calls
	thought := false // in this answer
	for i, item := range items {
		if item.Type != "function_call_output" && item.Type != "function_call" && len(open) > 0 {
			return open.unanswered()
		}
		switch item.Type {
		case "reasoning":
			if item.Encrypted == "" || item.Encrypted != signature(item.Summary.text()) {
				return refuse("Item of type 'reasoning' not found: store is false")
			}
			if i == len(items)-1 || items[i+1].Role == "user" {
				return refuse("Item of type 'reasoning' was provided without its required " +
					"following item.")
			}
			thought = true
		case "function_call":
			if strings.HasPrefix(item.CallID, "call_"+thoughtful) && !thought {
				return errors.New("Item of type 'function_call' was provided without its required " +
					"'reasoning' item")
			}
			open = append(open, item.CallID)
		case "function_call_output":
			thought = false
			if err := open.answer(item.CallID); err != nil {
				return err
			}
		default:
			if item.Role == "user" {
				thought = false
			}
		}
	}
	return open.unanswered()
}

// chatMessage is what rules about the order of messages in chat completions look at.
type chatMessage struct {
	role    string
	content string
	calls   []chatCall
}

// checkOrder checks the order of the messages of a chat completion.
func (r *Request) checkOrder(messages []chatMessage) error {
	switch r.model {
	case Mistral:
		return checkMistral(messages)
	case Devstral:
		return checkAlternation(messages)
	}
	return nil
}

var mistralID = regexp.MustCompile(`^[a-zA-Z0-9]{9}$`)

func checkMistral(messages []chatMessage) error {
	last := "system"
	for _, m := range messages {
		switch {
		case m.role == "user" && last == "tool":
			return refusal("Unexpected role 'user' after role 'tool'")
		case m.role == "assistant" && m.content == "" && len(m.calls) == 0:
			return refusal("Assistant message must have either content or tool_calls, but not none.")
		}
		for _, c := range m.calls {
			if !mistralID.MatchString(c.ID) {
				return refuse("Tool call id was %s but must be a-z, A-Z, 0-9, with a length of 9.", c.ID)
			}
		}
		last = m.role
	}
	if last != "user" && last != "tool" {
		return refuse("Expected last role User or Tool (or Assistant with prefix True) for serving "+
			"but got %s", last)
	}
	return nil
}

func checkAlternation(messages []chatMessage) error {
	count := 0
	for _, m := range messages {
		if m.role != "user" && (m.role != "assistant" || len(m.calls) > 0) {
			continue
		}
		if (m.role == "user") != (count%2 == 0) {
			return refusal("After the optional system message, conversation roles must alternate " +
				"user/assistant/user/assistant/...")
		}
		count++
	}
	return nil
}
