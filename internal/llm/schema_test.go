package llm

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAdaptSchema(t *testing.T) {
	for _, record := range records(t, "schemas.txt") {
		t.Run(record[0], func(t *testing.T) {
			for plain, want := range map[bool]string{false: record[2], true: record[3]} {
				got := adaptSchema(json.RawMessage(record[1]), plain)
				if require.Equal(t, want != "-", got != nil); got != nil {
					require.JSONEq(t, want, string(got), "plain: %v", plain)
				}
			}
		})
	}

	t.Run("growing without end", func(t *testing.T) {
		var schema strings.Builder
		schema.WriteString(`{"type":"object","$defs":{"0":{"type":"string"}`)
		for _, name := range []string{"1", "2", "3", "4", "5", "6", "7", "8", "9"} {
			before := `{"$ref":"#/$defs/` + string(name[0]-1) + `"}`
			schema.WriteString(`,"` + name + `":{"type":"object","properties":{"a":` + before +
				`,"b":` + before + `,"c":` + before + `,"d":` + before + `}}`)
		}
		schema.WriteString(`},"properties":{"x":{"$ref":"#/$defs/9"}}}`)
		require.NotNil(t, adaptSchema(json.RawMessage(schema.String()), false))
		require.Nil(t, adaptSchema(json.RawMessage(schema.String()), true))
	})
}

// A server that rejects a tool is not sent it again.
func TestRejectedTools(t *testing.T) {
	var names [][]string
	refusing := func(refuse func(sent []string, plain bool) string) *Client {
		names = nil
		return asking(t, OpenAI, func(w http.ResponseWriter, r *http.Request) {
			var asked struct {
				Tools []struct {
					Function struct{ Name string }
				}
			}
			var raw json.RawMessage
			_ = json.NewDecoder(r.Body).Decode(&raw)
			_ = json.Unmarshal(raw, &asked)
			var sent []string
			for _, tool := range asked.Tools {
				sent = append(sent, tool.Function.Name)
			}
			names = append(names, sent)
			if said := refuse(sent, !strings.Contains(string(raw), "minLength")); said != "" {
				status(400, `{"error":{"message":"`+said+`"}}`)(w, r)
				return
			}
			says(finished)(w, r)
		})
	}
	tool := func(name string) Tool {
		return Tool{Name: name, Schema: json.RawMessage(
			`{"type":"object","properties":{"a":{"type":"string","minLength":1}}}`)}
	}
	tools := []Tool{tool("one"), tool("two"), tool("three")}
	send := func(c *Client) {
		for _, err := range c.Stream(t.Context(), Request{Tools: tools}) {
			require.NoError(t, err)
		}
	}
	all, rest := []string{"one", "two", "three"}, []string{"one", "three"}
	for name, said := range map[string]string{
		"OpenAI":    `Invalid schema for function 'two': In context=(), 'x' is not permitted.`,
		"Anthropic": `tools.1.custom.input_schema: JSON schema is invalid`,
		"Gemini":    `Invalid value at 'tools[0].function_declarations[1].parameters'`,
	} {
		t.Run(name, func(t *testing.T) {
			c := refusing(func(sent []string, _ bool) string {
				if len(sent) == 3 {
					return said
				}
				return ""
			})
			send(c)
			send(c)
			require.Equal(t, [][]string{all, all, rest, rest}, names)
			offered, left := c.Offer(tools)
			require.Len(t, offered, 2)
			require.Equal(t, []string{"two"}, left)
		})
	}
	for name, said := range map[string]string{
		"Gemini": `Invalid JSON payload received. Unknown name \"minLength\"`,
		"Kimi": `Invalid request: tools.function.parameters is not a valid moonshot flavored json ` +
			`schema, details: <At path 'properties.a': when using anyOf, type should be defined in ` +
			`anyOf items instead of the parent schema>`,
	} {
		t.Run("plain schemas for "+name, func(t *testing.T) {
			c := refusing(func(_ []string, plain bool) string {
				if !plain {
					return said
				}
				return ""
			})
			send(c)
			send(c)
			require.Equal(t, [][]string{all, all, all}, names)
		})
	}
	t.Run("too many", func(t *testing.T) {
		many := tools
		for len(many) < 20 {
			many = append(many, tool("more"))
		}
		c := refusing(func(sent []string, _ bool) string {
			if len(sent) > 12 {
				return `'tools': maximum number of items is 12`
			}
			return ""
		})
		for _, err := range c.Stream(t.Context(), Request{Tools: many}) {
			require.NoError(t, err)
		}
		_, left := c.Offer(many)
		require.Len(t, left, 8)
	})
}
