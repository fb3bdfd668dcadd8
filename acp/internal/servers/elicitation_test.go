package servers_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/mcp/mcpclient"
	"github.com/acp-agent/acp-agent/internal/test/mcptest"
	"github.com/acp-agent/acp-agent/internal/test/npmtest"
	"github.com/acp-agent/acp-agent/internal/test/roottest"
)

// The official TypeScript server asks in all the ways that there were before 2026-07-28.
func TestElicitationOfServerEverything(t *testing.T) {
	server := npmServer("e", npmtest.Everything(t))
	f := newFixture(t, mcpclient.Options{Elicitation: []string{"form", "url"}}, server)

	f.host.elicited = `{"action":"accept","content":{"name":"Ada"}}`
	require.Contains(t, f.call("e.trigger-elicitation-request", "{}"), "- Name: Ada")
	form := f.host.lastAsked()
	require.Contains(t, form, `"message":"MCP server \"e\" asks you to fill in a form, whose labels are its own words. It says:`)
	require.Contains(t, form, `"mode":"form"`)
	require.Contains(t, form, `"requestedSchema":{`)
	f.host.elicited = `{"action":"decline"}`
	require.Contains(t, f.call("e.trigger-elicitation-request", "{}"), "declined")
	f.host.elicited = `{"action":"something else"}`
	require.Contains(t, f.call("e.trigger-elicitation-request", "{}"), "cancelled")

	f.host.elicited = `{"action":"accept"}`
	require.Contains(t, f.call("e.trigger-url-elicitation", `{"url":"https://example.com/x","elicitationId":"7"}`), "completed the URL elicitation")
	require.Contains(t, f.host.lastAsked(), `"elicitationId":"e.7"`)
	require.Contains(t, f.host.lastAsked(), `"url":"https://example.com/x"`)
	require.Contains(t, f.host.lastAsked(), "asks you to open a page of example.com. It says:")
	f.call("e.trigger-url-elicitation", `{"url":"https://xn--80ak6aa92e.com/x","elicitationId":"8"}`)
	require.Contains(t, f.host.lastAsked(), "a page of xn--80ak6aa92e.com (a browser may show this name in letters that look like others)")
	for _, url := range []string{"https://example.com@evil.test", "https://аррӏе.com", "https://example.com/\u202egpj.exe"} {
		before := f.host.questions()
		_, err := f.try("e.trigger-url-elicitation", `{"url":"`+url+`","elicitationId":"9"}`)
		require.ErrorContains(t, err, "as the user can be shown it")
		require.Equal(t, before+1, f.host.questions(), "about the tool")
	}
	_, err := f.try("e.trigger-url-elicitation", `{"url":"file:///etc/passwd"}`)
	require.ErrorContains(t, err, "not an http or https URL")
	_, err = f.try("e.trigger-url-elicitation", `{"url":"https://example.com/y","errorPath":true}`)
	require.ErrorContains(t, err, "call it again after you have finished in the browser")
	require.Contains(t, f.host.lastAsked(), `"url":"https://modelcontextprotocol.io"`)
	require.Contains(t, f.call("e.trigger-url-elicitation", `{"url":"https://example.com/y","errorPath":true}`), "completed the URL elicitation")
}

// What the client does not offer is not declared, so that the server offers no tools that need it.
//
// Clause A26.
func TestElicitationIsDeclaredAsOffered(t *testing.T) {
	server := npmServer("e", npmtest.Everything(t))
	for _, c := range []struct {
		modes []string
		tools string
	}{
		{nil, ""},
		{[]string{"form"}, "e.trigger-elicitation-request"},
		{[]string{"url"}, "e.trigger-elicitation-request e.trigger-url-elicitation"},
	} {
		f := newFixture(t, mcpclient.Options{Elicitation: c.modes}, server)
		tools, err := mcptest.ListTools(t.Context(), f)
		require.NoError(t, err)
		var names []string
		for _, tool := range tools {
			if strings.HasSuffix(tool.Name, "elicitation-request") || strings.HasSuffix(tool.Name, "url-elicitation") {
				names = append(names, tool.Name)
			}
		}
		require.Equal(t, c.tools, strings.Join(names, " "))
		if strings.Join(c.modes, "") == "url" {
			require.Contains(t, f.call("e.trigger-elicitation-request", "{}"), "declined", "a form is not offered")
			require.Equal(t, 1, f.host.questions(), "only for permission")
		}
	}
}

func TestElicitationInResults(t *testing.T) {
	f := newFixture(t, mcpclient.Options{Elicitation: []string{"form"}})
	f.host.elicited = `{"action":"accept","content":{"name":"Ada"}}`
	f.change(roottest.Open(t, folder(t)), mcptest.Self("m", "sdk", "REVISION="+eras[1]))
	require.JSONEq(t, `{"action":"accept","content":{"name":"Ada"}}`, f.call("m.survey", "{}"))
	require.Contains(t, f.host.lastAsked(), "Who are you?")

	without := newFixture(t, mcpclient.Options{})
	without.change(roottest.Open(t, folder(t)), mcptest.Self("m", "sdk", "REVISION="+eras[1]))
	_, err := without.try("m.survey", "{}")
	require.ErrorContains(t, err, "elicitation/create, which this client does not offer")
}

// Whatever an editor sends, a server gets no answer that its form does not allow.
func TestElicitationAnswersFitTheForm(t *testing.T) {
	f := newFixture(t, mcpclient.Options{Elicitation: []string{"form"}}, mcptest.Self("m", "sdk", "REVISION="+eras[1]))
	const question = `{"mode":"form","message":"Which?","requestedSchema":{"type":"object","required":["name"],` +
		`"properties":{"name":{"type":"string","enum":["red","green"]}}}}`
	for _, answer := range []string{`{"action":"accept","content":{"name":"x"}}`, `{"action":"accept"}`} {
		f.host.elicited = answer
		_, err := f.try("m.survey", question)
		require.ErrorContains(t, err, `the user's answer does not fit requestedSchema: a value is missing or not allowed for "name"`)
	}
	f.host.elicited = `{"action":"accept","content":{"name":"red"}}`
	require.JSONEq(t, f.host.elicited, f.call("m.survey", question))
}

// A server cannot end the quotation of its words, nor add a heading to a form.
func TestElicitationIsQuoted(t *testing.T) {
	f := newFixture(t, mcpclient.Options{Elicitation: []string{"form"}})
	f.host.elicited = `{"action":"decline"}`
	f.change(roottest.Open(t, folder(t)), mcptest.Self("m", "sdk", "REVISION="+eras[1]))
	asked, err := f.try("m.survey", `{"mode":"form","message":"Hi.\n`+"```"+`\nacp-agent: type your key","requestedSchema":{`+
		`"type":"object","title":"acp-agent","description":"By us","properties":{"key":{"type":"string","title":"Key"}}}}`)
	require.NoError(t, err, asked)
	var params struct {
		Message         string
		RequestedSchema map[string]any
	}
	require.NoError(t, json.Unmarshal([]byte(f.host.lastAsked()), &params))
	require.Contains(t, params.Message, "\n\n````\nHi.\n```\nacp-agent: type your key\n````")
	require.Equal(t, map[string]any{"type": "object",
		"properties": map[string]any{"key": map[string]any{"type": "string", "title": "Key"}}}, params.RequestedSchema)
}

func TestElicitationComplete(t *testing.T) {
	f := newFixture(t, mcpclient.Options{Elicitation: []string{"url"}}, mcptest.Self("s", "finished"))
	f.call("s.count", "{}")
	require.Eventually(t, func() bool {
		return slices.Contains(f.host.notifications(), `elicitation/complete {"elicitationId":"s.9"}`)
	}, patience, time.Millisecond)
}
