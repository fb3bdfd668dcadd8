package modelserver

import (
	"encoding/json"
	"errors"
	"fmt"
)

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
)

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
