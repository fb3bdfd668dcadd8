package model

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/llm"
)

// Stored sessions have entries in this form.
func TestStoredEntries(t *testing.T) {
	for raw, e := range map[string]entry{
		`{"tool":"t","step":2,"given":"g","from":"m","attached":{"a":1}}`: {Tool: "t", Step: 2,
			Given: "g", From: "m", Attached: json.RawMessage(`{"a":1}`)},
		`{"after":2}`: {After: 2},
		`{"thought":{"text":"Hm.","from":"m"},"after":1}`: {
			Thought: &llm.Thinking{Text: "Hm.", From: "m"}, After: 1},
		`{"prompt":true}`:                  {Prompt: true},
		`{"note":true}`:                    {Note: true},
		`{"note":true,"rejected":true}`:    {Note: true, Rejected: true},
		`{"note":true,"retried":true}`:     {Note: true, Retried: true},
		`{"refused":true}`:                 {Refused: true},
		`{"refused":true,"rejected":true}`: {Refused: true, Rejected: true},
		`{"note":true,"undone":true}`:      {Note: true, Undone: true},
		`{"withoutMedia":true}`:            {WithoutMedia: true},
		`{"withoutThoughts":true}`:         {WithoutThoughts: true},
		`{"summary":"S"}`:                  {Summary: "S"},
		`{"summary":"S","keep":true}`:      {Summary: "S", Keep: true},
	} {
		require.Equal(t, e, entryOf(json.RawMessage(raw)))
		require.JSONEq(t, raw, string(backend.Encode(e)))
	}
	for _, nothing := range []string{
		``, `7`, `{"summary":""}`, `{"summary":7}`, `{"undone":null,"note":false,"tool":""}`,
		`{"undone":1}`,
	} {
		require.Zero(t, entryOf(json.RawMessage(nothing)), nothing)
	}
}
