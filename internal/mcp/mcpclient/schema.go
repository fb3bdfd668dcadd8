package mcpclient

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	mcpjsonrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acp-agent/acp-agent/internal/text"
)

// resolveSchema returns a schema, and what to validate with. Both are nil if that is not possible,
// for example because the schema refers to another document: then nothing can be said of a value.
func resolveSchema(schema any) (*jsonschema.Schema, *jsonschema.Resolved) {
	raw, err := json.Marshal(schema)
	if err != nil || string(raw) == "null" {
		return nil, nil
	}
	var s jsonschema.Schema
	if json.Unmarshal(raw, &s) != nil {
		return nil, nil
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		return nil, nil
	}
	return &s, resolved
}

// checkAnswer fills the defaults of a form into the answer to it. It returns an error for the
// server if the answer does not fit the form's schema. The error names the fields, not what the
// user typed.
func checkAnswer(schema any, answer *mcp.ElicitResult) error {
	described, form := resolveSchema(schema)
	if answer.Action != "accept" || form == nil {
		return nil
	}
	content := maps.Clone(answer.Content)
	if content == nil {
		content = map[string]any{}
	}
	_ = form.ApplyDefaults(&content) // fails only for defaults that are no JSON
	if form.Validate(content) == nil {
		answer.Content = content
		return nil
	}
	var wrong []string
	for name, property := range described.Properties {
		value, given := answer.Content[name]
		switch _, field := resolveSchema(property); {
		case !given && slices.Contains(described.Required, name),
			given && field != nil && field.Validate(value) != nil:
			wrong = append(wrong, text.Quote(text.Truncate(name, maxLabel)))
		}
	}
	slices.Sort(wrong)
	if len(wrong) == 0 {
		return rpcError(mcpjsonrpc.CodeInvalidParams,
			"the user's answer does not fit requestedSchema")
	}
	return rpcError(mcpjsonrpc.CodeInvalidParams, "the user's answer does not fit "+
		"requestedSchema: a value is missing or not allowed for %s", strings.Join(wrong, ", "))
}
