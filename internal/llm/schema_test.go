package llm

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAdaptSchema(t *testing.T) {
	const text, number = `{"type":"string"}`, `{"type":"integer"}`
	for name, test := range map[string]struct{ schema, want, plain string }{
		"usual": {
			`{"type":"object","properties":{"a":` + text + `},"required":["a"]}`,
			`{"type":"object","properties":{"a":` + text + `},"required":["a"]}`,
			`{"type":"object","properties":{"a":` + text + `},"required":["a"]}`,
		},
		"nothing": {`{}`, `{"type":"object","properties":{}}`, `{"type":"object","properties":{}}`},
		"alternatives of objects": {
			`{"oneOf":[{"type":"object","properties":{"a":` + text + `,"k":{"const":"A"}},` +
				`"required":["a","k"]},{"type":"object","properties":{"b":` + number +
				`,"k":{"enum":["B"]}},"required":["k","b"]},{"type":"null"}]}`,
			`{"type":"object","properties":{"a":` + text + `,"b":` + number +
				`,"k":{"type":"string","enum":["A","B"]}}}`,
			`{"type":"object","properties":{"a":` + text + `,"b":` + number +
				`,"k":{"type":"string","enum":["A","B"]}}}`,
		},
		"all of": {
			`{"$defs":{"p":{"type":"object","properties":{"a":` + text + `},"required":["a"]}},` +
				`"allOf":[{"$ref":"#/$defs/p"},{"properties":{"b":` + number + `}}]}`,
			`{"type":"object","properties":{"a":` + text + `,"b":` + number + `},"required":["a"]}`,
			`{"type":"object","properties":{"a":` + text + `,"b":` + number + `},"required":["a"]}`,
		},
		"one name, two types": {
			`{"type":"object","anyOf":[{"properties":{"a":` + text + `}},{"properties":{"a":` + number + `}}]}`,
			`{"type":"object","properties":{"a":` + text + `}}`, `{"type":"object","properties":{"a":` + text + `}}`,
		},
		"not": {`{"type":"object","not":{"required":["a"]}}`,
			`{"type":"object","properties":{}}`, `{"type":"object","properties":{}}`},
		"a text": {`{"type":"string"}`, ``, ``}, "no schema": {`true`, ``, ``},
		"alternatives without an object": {`{"anyOf":[{"type":"string"},{"type":"null"}]}`,
			`{"type":"object","properties":{}}`, `{"type":"object","properties":{}}`},
		"referring to itself": {`{"$ref":"#"}`, `{"type":"object","properties":{}}`,
			`{"type":"object","properties":{}}`},
		"details": {
			`{"type":"object","additionalProperties":false,"properties":{` +
				`"a":{"type":["string","null"],"format":"uri"},"b":{"enum":[1,2]},"c":true,` +
				`"d":{"type":"array"},"e":{"anyOf":[` + number + `,{"type":"null"}],"title":"E"},` +
				`"f":{"type":["string","integer"]},"g":{"allOf":[{"type":"string"}]},` +
				`"h":{"anyOf":[{"oneOf":[` + text + `,` + number + `]},{"type":"null"}]}},"required":["a","x"]}`,
			`{"type":"object","additionalProperties":false,"properties":{` +
				`"a":{"type":["string","null"],"format":"uri"},"b":{"enum":[1,2]},"c":true,` +
				`"d":{"type":"array"},"e":{"anyOf":[` + number + `,{"type":"null"}],"title":"E"},` +
				`"f":{"type":["string","integer"]},"g":{"allOf":[{"type":"string"}]},` +
				`"h":{"anyOf":[{"oneOf":[` + text + `,` + number + `]},{"type":"null"}]}},"required":["a","x"]}`,
			`{"type":"object","properties":{"a":{"type":"string","nullable":true},` +
				`"b":{"type":"number"},"c":` + text + `,` +
				`"d":{"type":"array","items":` + text + `},"e":{"type":"integer","nullable":true},` +
				`"f":` + text + `,"g":` + text +
				`,"h":{"type":"string","nullable":true}},"required":["a"]}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			for plain, want := range map[bool]string{false: test.want, true: test.plain} {
				got, ok := adaptSchema(json.RawMessage(test.schema), plain)
				if require.Equal(t, want != "", ok); ok {
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
		_, ok := adaptSchema(json.RawMessage(schema.String()), false)
		require.True(t, ok)
		_, ok = adaptSchema(json.RawMessage(schema.String()), true)
		require.False(t, ok)
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
			offered, surplus, unfit := c.Offer(tools)
			require.Len(t, offered, 2)
			require.Empty(t, surplus)
			require.Equal(t, []string{"two"}, unfit)
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
		_, surplus, _ := c.Offer(many)
		require.Len(t, surplus, 8)
	})
}
