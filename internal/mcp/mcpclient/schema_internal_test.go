package mcpclient

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

func TestAnswersFitTheForm(t *testing.T) {
	const form = `{"type":"object","required":["colour"],"properties":{` +
		`"colour":{"type":"string","enum":["red","green"]},"size":{"type":"integer","minimum":1,"default":3},` +
		`"mail":{"type":"string","format":"email"},"tags":{"type":"array","items":{"type":"string","enum":["a","b"]},"maxItems":1}}}`
	for answer, says := range map[string]string{
		`{"action":"accept","content":{"colour":"red","size":1}}`:              "",
		`{"action":"accept","content":{"colour":"red"}}`:                       "",
		`{"action":"accept","content":{"colour":"red","size":1,"other":true}}`: "",
		`{"action":"accept","content":{"colour":"red","size":1,"tags":["a"]}}`: "",
		`{"action":"decline"}`:                                                     "",
		`{"action":"cancel","content":{"colour":"x"}}`:                             "",
		`{"action":"accept","content":{"colour":"secret","size":1}}`:               `"colour"`,
		`{"action":"accept","content":{"colour":"red","size":0}}`:                  `"size"`,
		`{"action":"accept","content":{"colour":"red","size":"1"}}`:                `"size"`,
		`{"action":"accept","content":{"colour":"red","size":1.5}}`:                `"size"`,
		`{"action":"accept","content":{"colour":"red","size":1,"tags":["a","b"]}}`: `"tags"`,
		`{"action":"accept","content":{"colour":7,"size":1,"tags":["c"]}}`:         `"colour", "tags"`,
		`{"action":"accept","content":{}}`:                                         `"colour"`,
		`{"action":"accept"}`:                                                      `"colour"`,
	} {
		var schema any
		require.NoError(t, json.Unmarshal([]byte(form), &schema))
		var result mcp.ElicitResult
		require.NoError(t, json.Unmarshal([]byte(answer), &result))
		err := checkAnswer(schema, &result)
		if says == "" {
			require.NoError(t, err, answer)
			if result.Action == "accept" {
				require.Contains(t, result.Content, "size", "the default, if there was none")
			}
			continue
		}
		require.ErrorContains(t, err, "the user's answer does not fit requestedSchema: a value is missing or not allowed for "+says, answer)
		require.NotContains(t, err.Error(), "secret")
	}
	for _, odd := range []any{nil, map[string]any{"$ref": "https://example.com"}, map[string]any{"type": 7}} {
		require.NoError(t, checkAnswer(odd, &mcp.ElicitResult{Action: "accept"}), "nothing can be said")
	}
}

// What a server sends with an error is a part of it.
func TestErrorsWithData(t *testing.T) {
	plain := errors.New("no")
	require.Equal(t, plain, withData(plain))
	refusal := &jsonrpc.Error{Code: -32602, Message: "no such table"}
	require.Equal(t, "no such table", withData(refusal).Error())
	refusal.Data = json.RawMessage(`{"tables":["a"]}`)
	require.Equal(t, `no such table: {"tables":["a"]}`, withData(refusal).Error())
	require.ErrorIs(t, withData(refusal), refusal)
}
