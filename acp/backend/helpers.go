package backend

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// For runtimes that would rather not write JSON: the few values that every one needs, and how they are written.

// Text is an update with a piece of the agent's answer.
func Text(text string) Update {
	var params struct {
		Update struct {
			Kind    string `json:"sessionUpdate"`
			Content struct {
				Type string `json:"type"`
				Text string `json:"text"`
			} `json:"content"`
		} `json:"update"`
	}
	params.Update.Kind = "agent_message_chunk"
	params.Update.Content.Type, params.Update.Content.Text = "text", text
	return Encode(params)
}

// Encode is value as JSON, with <, > and & as they are: code is full of them. It panics at what JSON cannot hold, so it
// is for values of types that are known to fit.
func Encode(value any) Raw {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		panic(fmt.Sprintf("runtime: encode %T: %v", value, err))
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// EndTurn is the result of a prompt that was answered.
func EndTurn() Raw { return Raw(`{"stopReason":"end_turn"}`) }

// PromptText is the text of a prompt's params, its text blocks joined by line breaks.
func PromptText(params Raw) (string, error) {
	var p struct {
		Prompt []struct{ Type, Text string }
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return "", fmt.Errorf("the prompt cannot be read: %w", err)
	}
	var texts []string
	for _, block := range p.Prompt {
		if block.Type == "text" {
			texts = append(texts, block.Text)
		}
	}
	return strings.Join(texts, "\n"), nil
}
