package mcpserver

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/workspace"
)

// request returns a request of a legacy client.
func request(method, params string) string {
	return `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":` + params + `}`
}

// contents returns the text of a resource.
func contents(t *testing.T, m message) string {
	t.Helper()
	require.Nil(t, m.Error, m.line)
	list, _ := m.Result["contents"].([]any)
	require.Len(t, list, 1, m.line)
	first, _ := list[0].(map[string]any)
	text, _ := first["text"].(string)
	return text
}

func conventional(t *testing.T) (a, b string) {
	t.Helper()
	a = tree(t, map[string]string{"AGENTS.md": "Be brief.", ".claude/commands/review.md": "Review the change. File: $ARGUMENTS[0], see @notes.md"})
	b = tree(t, map[string]string{"AGENTS.md": "Be exact.", ".agents/skills/deploy/SKILL.md": "---\nname: deploy\ndescription: Deploys.\n---\nDo it.",
		".mcp.json": `{"mcpServers":{"db":{"command":"db-server"}}}`})
	return a, b
}

func TestA25_Resources(t *testing.T) {
	a, b := conventional(t)
	p := start(t, Options{})
	p.begin(withRoots)
	p.answer(p.question(), a, b)
	p.write(request("resources/list", "{}"))
	list, _ := p.answerTo(1).Result["resources"].([]any)
	require.Len(t, list, 3)

	p.write(request("resources/read", `{"uri":"`+catalogURI+`"}`))
	var catalog struct {
		Roots, Artifacts []map[string]any
	}
	require.NoError(t, json.Unmarshal([]byte(contents(t, p.answerTo(1))), &catalog))
	require.Len(t, catalog.Roots, 2)
	require.Len(t, catalog.Artifacts, 5)

	p.write(request("resources/read", `{"uri":"`+instructionsURI+`"}`))
	require.Regexp(t, `(?s)Be brief.*Be exact`, contents(t, p.answerTo(1)))

	p.write(request("resources/read", `{"uri":"`+rootsURI+`"}`))
	require.Contains(t, contents(t, p.answerTo(1)), filepath.Base(b))

	p.write(changed)
	p.answer(p.question(), b)
	p.write(request("resources/read", `{"uri":"`+instructionsURI+`"}`))
	text := contents(t, p.answerTo(1))
	require.Contains(t, text, "Be exact")
	require.NotContains(t, text, "Be brief")

	p.write(request("resources/read", `{"uri":"file:///etc/passwd"}`))
	require.NotNil(t, p.answerTo(1).Error)
}

func TestA30_PromptsAreLabelled(t *testing.T) {
	a, b := conventional(t)
	p := start(t, Options{})
	p.begin(withRoots)
	p.answer(p.question(), a, b)
	p.write(request("prompts/list", "{}"))
	line := p.answerTo(1).line
	require.Contains(t, line, `"name":"review"`)
	require.Contains(t, line, `"name":"deploy"`)
	p.write(request("prompts/get", `{"name":"review","arguments":{"arguments":"main.go"}}`))
	line = p.answerTo(1).line
	require.Contains(t, line, "Review the change.")
	require.Contains(t, line, "main.go")
	require.Contains(t, line, a)
	t.Run("D4/arguments are where the text has places for them", func(t *testing.T) {
		require.Contains(t, line, "File: main.go, see @notes.md")
		require.NotContains(t, line, "Arguments: ")
		require.Equal(t, 1, strings.Count(line, "no files were inserted"))
	})
	for _, name := range []string{"discovered", "none"} {
		p.write(request("prompts/get", `{"name":"`+name+`"}`))
		m := p.answerTo(1)
		require.NotNil(t, m.Error, m.line)
		require.Contains(t, m.Error.Message, name)
	}
}

func TestM8_ModernPromptsAndResources(t *testing.T) {
	a, b := conventional(t)
	p := start(t, Options{})
	for method, params := range map[string]string{"prompts/get": `"name":"review"`, "resources/read": `"uri":"` + instructionsURI + `"`} {
		meta := `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"p","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"roots":{}}}`
		p.write(request(method, `{`+params+meta+`}`))
		m := p.answerTo(1)
		require.Equal(t, "input_required", m.Result["resultType"], m.line)
		state, _ := m.Result["requestState"].(string)
		p.write(request(method, `{`+params+meta+answered(state, rootsResult(a, b))+`}`))
		m = p.answerTo(1)
		require.Nil(t, m.Error, m.line)
		require.Equal(t, "complete", m.Result["resultType"], m.line)
		require.Contains(t, m.line, a)
	}
	p.write(request("prompts/list", `{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"p","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"roots":{}}}}`))
	require.Contains(t, p.answerTo(1).line, `"prompts":[]`, "it cannot be asked there")
	roots, err := workspace.NewRoots(a, nil)
	require.NoError(t, err)
	with := start(t, Options{Roots: roots})
	with.write(request("prompts/list", `{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"p","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}`))
	require.Contains(t, with.answerTo(1).line, `"name":"review"`)
}

// The name of a folder cannot pretend that a prompt comes from another one.
func TestA30_PromptLabelIsOneLine(t *testing.T) {
	a := tree(t, map[string]string{"x\ny\u202e/.claude/commands/go.md": "Do it."})
	p := start(t, Options{})
	p.begin(withRoots)
	p.answer(p.question(), a+"/x\ny\u202e")
	p.write(`{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"go"}}`)
	m := p.answerTo(1)
	messages, ok := m.Result["messages"].([]any)
	require.True(t, ok, m.line)
	content, _ := messages[0].(map[string]any)["content"].(map[string]any)
	require.Contains(t, fmt.Sprint(content["text"]), `/x\ny\u202e", for /go:`)
}
