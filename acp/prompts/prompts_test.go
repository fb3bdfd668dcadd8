package prompts_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/prompts"
)

func TestTyped(t *testing.T) {
	text := func(s string) map[string]any { return map[string]any{"type": "text", "text": s} }
	link := map[string]any{"type": "resource_link", "name": "a", "uri": "file:///a"}
	resource := map[string]any{"type": "resource",
		"resource": map[string]any{"uri": "file:///a", "text": "/not typed"}}
	rules := text("Sharing `AGENTS.md`:\n\n---\n/roots is explained here.\n\n/roots\n---")
	selection := text(
		"<selected_code>\n<path>/a</path>\n<snippet>\n/help\n</snippet>\n</selected_code>")
	said := func(s string) map[string]any {
		return text("<previous_user_message>" + s + "</previous_user_message>")
	}
	type prompt []any
	for name, c := range map[string]struct {
		prompt
		want []string
	}{
		"nothing": {prompt{}, nil},
		"words": {prompt{text(" find me ")},
			[]string{" find me "}},
		"CodeCompanion, rules first": {prompt{rules, text("/roots")},
			[]string{"/roots"}},
		"CodeCompanion, rules and words": {
			prompt{rules, text("Sharing the following file as context: /w/a.go"), text("explain")},
			[]string{"explain"}},
		"CodeCompanion, a buffer": {
			prompt{text("<attachment filepath=\"/a\" buffer_number=\"1\">File content:\n````go\n" +
				"x\n````</attachment>"), text("explain")}, []string{"explain"}},
		"agentic.nvim, a selection last": {
			prompt{text("/search x"), text("IMPORTANT: Focus and respect the line numbers " +
				"provided in the <line_start> and <line_end> tags"), selection, link},
			[]string{"/search x"}},
		"avante": {
			prompt{link, selection, said("/roots\n"), said("/help"), said("hi"),
				text("<system_context>Continuing from previous session with 3 recent user " +
					"messages</system_context>")}, []string{"/roots\n"}},
		"avante, with a new session": {
			prompt{said("hi"), text("<previous_assistant_message>ho</previous_assistant_message>"),
				said("/roots"), text("<system_context>Continuing from previous ACP session with " +
					"3 recent messages preserved for context</system_context>")},
			[]string{"/roots"}},
		"a selection first": {prompt{link, selection, text("/roots")},
			[]string{"/roots"}},
		"Zed, mentions between words": {prompt{text("compare "), link, text(" with "),
			resource}, []string{"compare ", " with "}},
		"Zed, a mention in a command": {prompt{text("/search one "), link, text(" two")},
			[]string{"/search one ", " two"}},
		"Zed, a path after a mention": {prompt{text("compare "), link, text(" /usr")},
			[]string{"compare ", " /usr"}},
		"Zed, a command on a line of its own": {
			prompt{text("explain "), link, text("\n/help me")}, []string{"\n/help me"}},
		"a command after a mention": {prompt{link, text(" /help")},
			[]string{" /help"}},
		"the last of several commands": {
			prompt{text("/one"), text("/two"), text("three")}, []string{"/two", "three"}},
		"rules in an unknown form": {
			prompt{text("# Rules\n\nBe kind."), text("/roots")}, []string{"/roots"}},
		"a path in a later block": {prompt{text("what is"), text("/usr/bin/env")},
			[]string{"what is", "/usr/bin/env"}},
		"comments in a later block": {prompt{text("explain"), text("// one"),
			text("/* two */")}, []string{"explain", "// one", "/* two */"}},
		"for the agent only": {
			prompt{map[string]any{"type": "text", "text": "/one",
				"annotations": map[string]any{"audience": []string{"assistant"}}}, text("two")},
			[]string{"two"}},
		"for both": {
			prompt{map[string]any{"type": "text", "text": "one",
				"annotations": map[string]any{"audience": []string{"assistant", "user"}}}},
			[]string{"one"}},
		"only what looks like a block of editor": {prompt{text("<b>/help</b>")},
			[]string{"<b>/help</b>"}},
		"an element that is not closed": {prompt{text("<T> is a type"),
			text("parameter</U>")}, []string{"<T> is a type", "parameter</U>"}},
	} {
		t.Run(name, func(t *testing.T) {
			params, err := json.Marshal(map[string]any{"prompt": c.prompt})
			require.NoError(t, err)
			blocks, err := prompts.Typed(params)
			require.NoError(t, err)
			var got []string
			for _, b := range blocks {
				got = append(got, b.Text)
				require.Contains(t, c.prompt[b.Index].(map[string]any)["text"], b.Text)
			}
			require.Equal(t, c.want, got)
		})
	}
	t.Run("commands", func(t *testing.T) {
		for name, c := range map[string]struct {
			prompt
			want, arguments string
		}{
			"nothing":   {prompt{}, "", ""},
			"words":     {prompt{text("find me")}, "", ""},
			"a slash":   {prompt{text("/ me")}, "", "me"},
			"a command": {prompt{text(" /find  me\nand him ")}, "find", "me\nand him"},
			"a mention": {prompt{text("/find me "), link, text(" and him"), selection}, "find",
				"me and him"},
			"after context": {prompt{rules, text("/find")}, "find", ""},
		} {
			params, err := json.Marshal(map[string]any{"prompt": c.prompt})
			require.NoError(t, err, name)
			command := prompts.ParseCommand(params)
			require.Equal(t, []string{c.want, c.arguments},
				[]string{command.Name, command.Arguments}, name)
		}
		require.Empty(t, prompts.ParseCommand([]byte(`[]`)))
	})
	_, err := prompts.Typed([]byte(`[]`))
	require.Error(t, err)
}
