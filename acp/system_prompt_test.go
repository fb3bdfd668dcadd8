package acp_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/explore"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
)

// lifecycle returns the params of a method that opens a session, with a system prompt.
func lifecycle(id, dir, prompt string) string {
	member := ""
	if id != "" {
		member = fmt.Sprintf(`"sessionId":%q,`, id)
	}
	return fmt.Sprintf(`{%s"cwd":%q,"mcpServers":[],"systemPrompt":%s}`, member, dir, prompt)
}

// A system prompt that cannot be followed as a whole opens no session, and has no effect on one
// that exists.
//
// Clause A5.
func TestSystemPromptsAreChecked(t *testing.T) {
	const text = `{"type":"text","text":"Be brief."}`
	for prompt, want := range map[string]string{
		`7`:  "systemPrompt type",
		`{}`: "systemPrompt.mode required, systemPrompt.content required",
		`{"mode":"prepend","content":[` + text + `]}`:       "systemPrompt.mode unsupported",
		`{"mode":null,"content":[` + text + `]}`:            "systemPrompt.mode null",
		`{"mode":"append","content":[]}`:                    "systemPrompt.content empty",
		`{"mode":"append","content":"Be brief."}`:           "systemPrompt.content type",
		`{"mode":"append","content":[` + text + `,"more"]}`: "systemPrompt.content type",
		`{"mode":"append","content":[{"type":"text","text":" \n"}]}`: "" +
			"systemPrompt.content[0].text empty",
		`{"mode":"append","content":[{"type":"text"}]}`: "systemPrompt.content[0].text required",
		`{"mode":"override","content":[` + text + `,{"type":"image","data":"","mimeType":"image/png"}]}`: "" +
			"systemPrompt.content[1].type unsupported",
		`{"mode":"append","Content":[` + text + `]}`: "systemPrompt.Content wrong_case",
	} {
		r := &scripted{prompts: backend.SystemPromptsServed}
		c := connect(t, acp.Options{Backend: using(r)})
		c.initialize()
		dir := folder(t)
		id := c.open(dir)
		before := r.noted()
		for method, session := range map[string]string{"session/new": "", "session/load": id,
			"session/resume": id, "session/fork": id} {
			m := c.try(method, lifecycle(session, dir, prompt))
			require.NotNil(t, m.Error, prompt)
			require.Equal(t, jsonrpc.CodeInvalidParams, m.Error.Code)
			var data struct {
				Violations []struct{ Field, Reason string }
			}
			require.NoError(t, json.Unmarshal(m.Error.Data, &data))
			var got []string
			for _, v := range data.Violations {
				got = append(got, v.Field+" "+v.Reason)
			}
			require.Equal(t, want, strings.Join(got, ", "), prompt)
		}
		require.Equal(t, before, r.noted())
		require.Len(t, c.list(`{}`), 1)
	}
}

// A system prompt that is served is advertised, and reaches the backend with each request that
// opens a session. One that only the backend can judge reaches it unchanged.
//
// Clause A1.
func TestSystemPromptsReachTheBackend(t *testing.T) {
	for name, c := range map[string]struct {
		rule       backend.SystemPrompts
		advertised string
		prompts    []string
	}{
		"served": {backend.SystemPromptsServed, `{"mode":{"override":{}}}`, []string{"null",
			`{"mode":"append","content":[{"type":"text","text":"One."},{"type":"text","text":"Two."}]}`,
			`{"mode":"override","content":[{"type":"text","text":"One."}],"_meta":{"a":1}}`}},
		"unchecked": {backend.SystemPromptsUnchecked, "", []string{"7",
			`{"mode":"_ours","content":[{"type":"image"}],"more":[]}`}},
	} {
		t.Run(name, func(t *testing.T) {
			var got string
			r := &scripted{prompts: c.rule, opened: func(a backend.Activation, _ backend.Host) {
				var p struct{ SystemPrompt json.RawMessage }
				_ = json.Unmarshal(a.Params, &p)
				got = string(p.SystemPrompt)
			}}
			client := connect(t, acp.Options{Backend: using(r)})
			var initialized struct {
				AgentCapabilities struct{ SessionCapabilities map[string]json.RawMessage }
			}
			require.NoError(t, json.Unmarshal(client.initialize(), &initialized))
			capabilities := initialized.AgentCapabilities.SessionCapabilities
			require.Equal(t, c.advertised, string(capabilities["systemPrompt"]))
			dir := folder(t)
			id := client.open(dir)
			for _, prompt := range c.prompts {
				for method, session := range map[string]string{"session/new": "", "session/load": id,
					"session/resume": id, "session/fork": id} {
					got = ""
					client.call(method, lifecycle(session, dir, prompt))
					require.Equal(t, strings.TrimPrefix(prompt, "null"), strings.TrimPrefix(got, "null"))
				}
			}
		})
	}
}

// Without a model nothing can follow instructions, so they are refused, as ACP demands.
//
// Clause A5.
func TestSystemPromptsWithoutAModel(t *testing.T) {
	c := connect(t, acp.Options{Backend: explore.New})
	require.NotContains(t, string(c.initialize()), "systemPrompt")
	m := c.try("session/new", lifecycle("", folder(t),
		`{"mode":"append","content":[{"type":"text","text":"Be brief."}]}`))
	require.Equal(t, jsonrpc.CodeInvalidParams, m.Error.Code)
	require.Contains(t, m.Error.Message, "systemPrompt")
	require.Contains(t, m.Error.Message, "is not supported: there is no model that would follow it")
	require.Empty(t, c.list(`{}`))
	c.call("session/new", lifecycle("", folder(t), "null"))
}
