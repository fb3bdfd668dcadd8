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
		`{"tool":"t","step":2,"given":"g","from":"m","attached":{"a":1}}`: callEntry{Tool: "t", Step: 2,
			Given: "g", From: "m", Attached: json.RawMessage(`{"a":1}`)},
		`{"after":2}`: textEntry{2},
		`{"thought":{"text":"Hm.","from":"m"},"after":1}`: thoughtEntry{
			llm.Thinking{Text: "Hm.", From: "m"}, 1},
		`{"prompt":true}`:                  promptEntry{},
		`{"note":true}`:                    noteEntry{},
		`{"note":true,"rejected":true}`:    noteEntry{Rejected: true},
		`{"note":true,"retried":true}`:     retriedEntry{},
		`{"refused":true}`:                 refusedEntry{},
		`{"refused":true,"rejected":true}`: refusedEntry{Rejected: true},
		`{"note":true,"undone":true}`:      undoneEntry{},
		`{"withoutMedia":true}`:            noMediaEntry{},
		`{"withoutThoughts":true}`:         noThoughtsEntry{},
		`{"summary":"S"}`:                  summaryEntry{Summary: "S"},
		`{"summary":"S","keep":true}`:      summaryEntry{"S", true},
	} {
		require.Equal(t, e, entryOf(json.RawMessage(raw)))
		require.JSONEq(t, raw, string(backend.Encode(e)))
	}
}
