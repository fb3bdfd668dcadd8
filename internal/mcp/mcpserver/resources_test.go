package mcpserver

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
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
	a = tree(t, map[string]string{"AGENTS.md": "Be brief.",
		".claude/commands/review.md": "Review the change. File: $ARGUMENTS[0], see @notes.md"})
	b = tree(t, map[string]string{"AGENTS.md": "Be exact.",
		".agents/skills/deploy/SKILL.md": "---\nname: deploy\ndescription: Deploys.\n---\nDo it.",
		".mcp.json":                      `{"mcpServers":{"db":{"command":"db-server"}}}`})
	return a, b
}

// Clause A25.
func TestResources(t *testing.T) {
	a, b := conventional(t)
	p := startWith(t, Options{}, a, b)
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

	p.write(changed)
	p.answer(p.question(), t.TempDir())
	p.write(request("resources/read", `{"uri":"`+instructionsURI+`"}`))
	require.Contains(t, contents(t, p.answerTo(1)), "no instructions",
		"clients reject contents without a text")

	p.write(request("resources/read", `{"uri":"file:///etc/passwd"}`))
	require.NotNil(t, p.answerTo(1).Error)
}

// Clause A30.
func TestPromptsAreLabelled(t *testing.T) {
	a, b := conventional(t)
	p := startWith(t, Options{}, a, b)
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

// Clause M8.
func TestModernPromptsAndResources(t *testing.T) {
	a, b := conventional(t)
	p := start(t, Options{})
	for method, params := range map[string]string{"prompts/get": `"name":"review"`,
		"resources/read": `"uri":"` + instructionsURI + `"`} {
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
	roots := rootSet(t, a)
	with := start(t, Options{Roots: roots})
	with.write(request("prompts/list",
		`{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"p","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}`))
	require.Contains(t, with.answerTo(1).line, `"name":"review"`)
}

// The name of a folder cannot pretend that a prompt comes from another one.
//
// Clause A30.
func TestPromptLabelIsOneLine(t *testing.T) {
	a := tree(t, map[string]string{"x\ny\u202e/.claude/commands/go.md": "Do it."})
	p := startWith(t, Options{}, a+"/x\ny\u202e")
	p.write(`{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"go"}}`)
	m := p.answerTo(1)
	messages, ok := m.Result["messages"].([]any)
	require.True(t, ok, m.line)
	content, _ := messages[0].(map[string]any)["content"].(map[string]any)
	require.Contains(t, fmt.Sprint(content["text"]), `/x\ny\u202e", for /go:`)
}

const promptsChanged = "notifications/prompts/list_changed"

// Clause M9.
func TestLegacyClientIsToldThatItsPromptsHaveChanged(t *testing.T) {
	a, b := conventional(t)
	p := start(t, Options{})
	p.write(initialize(withRoots))
	capabilities, _ := p.answerTo(0).Result["capabilities"].(map[string]any)
	require.Equal(t, map[string]any{"listChanged": true}, capabilities["prompts"])
	p.write(initialized)
	p.answer(p.question(), a)
	p.write(request("prompts/list", "{}"))
	require.Contains(t, p.answerTo(1).line, `"name":"review"`, "and nothing had changed until then")
	p.write(changed)
	p.answer(p.question(), b)
	require.Equal(t, promptsChanged, p.readAny().Method)
	p.write(request("prompts/list", "{}"))
	line := p.answerTo(1).line
	require.Contains(t, line, `"name":"deploy"`)
	require.NotContains(t, line, `"name":"review"`)

	p.write(changed) // without a change
	p.answer(p.question(), b)
	p.write(request("prompts/list", "{}"))
	require.Empty(t, p.readAny().Method)
}

// meta is what a modern client says in each request, and listen its subscription.
const (
	meta   = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"p","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"roots":{}}}`
	listen = `{"jsonrpc":"2.0","id":"listen","method":"subscriptions/listen","params":{"notifications":{"promptsListChanged":true},` + meta + `}}`
)

// Clause M9.
func TestEndOfInputEndsSubscriptions(t *testing.T) {
	p := start(t, Options{limits: limits{grace: time.Hour}})
	p.write(listen)
	require.Equal(t, "notifications/subscriptions/acknowledged", p.read().Method)
	require.NoError(t, p.in.Close())
	awaitEnd(t, p.ended)
}

// A modern client cannot be asked for its roots when it lists its prompts, so it gets those of the
// roots of its last call.
//
// Clause M8.
func TestModernClientListsPrompts(t *testing.T) {
	a, b := conventional(t)
	p := start(t, Options{})
	list := func() string {
		t.Helper()
		p.write(request("prompts/list", `{`+meta+`}`))
		m := p.answerTo(1)
		require.Nil(t, m.Error, m.line)
		return m.line
	}
	p.write(listen)
	require.Equal(t, "notifications/subscriptions/acknowledged", p.read().Method)
	require.Contains(t, list(), `"prompts":[]`, "no roots are known yet")

	// change calls a tool with roots, which changes the prompts.
	change := func(id int, dirs ...string) {
		t.Helper()
		p.callAnswered(id, "list_roots", `{}`, rootsResult(dirs...))
		methods := []string{p.readAny().Method, p.readAny().Method}
		require.ElementsMatch(t, []string{"", promptsChanged}, methods,
			"the answer and the notification")
	}
	change(2, a)
	require.Contains(t, list(), `"name":"review"`)
	change(4, b)
	line := list()
	require.Contains(t, line, `"name":"deploy"`)
	require.NotContains(t, line, `"name":"review"`, "the first folder is no root any more")

	require.NoError(t, os.MkdirAll(filepath.Join(b, ".claude/commands"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(b, ".claude/commands/mend.md"),
		[]byte("Mend it."), 0o644))
	require.Contains(t, list(), `"name":"mend"`, "it is new in the root")
	p.callAnswered(6, "list_roots", `{}`, rootsResult(b))
	require.Empty(t, p.readAny().Method, "the roots are the same")

	quiet := start(t, Options{})
	quiet.callAnswered(1, "list_roots", `{}`, rootsResult(a))
	require.Empty(t, quiet.readAny().Method)
	require.NoError(t, quiet.in.Close())
	for m := range quiet.lines {
		t.Fatal("it did not ask for this: " + m.line)
	}
}
