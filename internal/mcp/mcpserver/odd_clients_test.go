package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/workspace/tools"
)

// No error has the code 0, which JSON-RPC does not define.
func TestErrorsHaveCodes(t *testing.T) {
	p := start(t, Options{})
	require.Equal(t, -32600, p.ask("list_roots", "{}").Error.Code)
	p.begin(withoutRoots)
	p.write(initialize(withoutRoots))
	m := p.answerTo(0)
	require.NotNil(t, m.Error, m.line)
	require.Equal(t, -32600, m.Error.Code, m.line)
}

// A client is not asked for its roots before it has said that it is ready.
func TestNotAskedBeforeInitialized(t *testing.T) {
	a := tree(t, map[string]string{"f": "in a"})
	p := start(t, Options{Timeout: patience})
	p.write(initialize(withRoots))
	p.answerTo(0)
	p.write(call(1, "read_file", read("f")), `{"jsonrpc":"2.0","id":2,"method":"ping"}`)
	require.EqualValues(t, 2, p.read().ID, "not a question")
	p.write(initialized)
	p.answer(p.question(), a)
	require.Contains(t, p.answerTo(1).text(), "in a")
}

func TestNamedPromptArguments(t *testing.T) {
	a := tree(t, map[string]string{
		".claude/commands/greet.md": "---\ndescription: Greets.\narguments: [who, how]\n---\nGreet $who, $how."})
	p := serving(t, a)
	p.write(request("prompts/list", "{}"))
	require.Contains(t, p.answerTo(1).line, `"arguments":[{"name":"who"},{"name":"how"}]`)
	for _, test := range []struct {
		given map[string]string
		want  string
	}{
		{map[string]string{"who": "Ada", "how": "kindly"}, "Greet Ada, kindly."},
		{map[string]string{"who": "Ada Lovelace", "how": `"hi" \ 'x'`}, `Greet Ada Lovelace, "hi" \ 'x'.`},
		{map[string]string{"how": "kindly"}, "Greet , kindly."},
		{map[string]string{"arguments": "Ada kindly"}, "Greet Ada, kindly."},
	} {
		given, err := json.Marshal(test.given)
		require.NoError(t, err)
		p.write(request("prompts/get", `{"name":"greet","arguments":`+string(given)+`}`))
		m := p.answerTo(1)
		messages, _ := m.Result["messages"].([]any)
		require.Len(t, messages, 1, m.line)
		content, _ := messages[0].(map[string]any)["content"].(map[string]any)
		require.Contains(t, content["text"], test.want)
	}
}

// What is gone is not listed as accessible, and what is in its place is not used.
//
// Clause C8.
func TestRootThatIsGoneIsLeftOut(t *testing.T) {
	a, b := tree(t, map[string]string{"f": "in a"}), tree(t, map[string]string{"f": "in b"})
	p := serving(t, a, b)
	list := func() []any {
		m := p.ask("list_roots", "{}")
		out, _ := structured(m)["left_out"].([]any)
		return out
	}
	require.Empty(t, list())
	require.NoError(t, os.RemoveAll(b))
	require.Len(t, list(), 1)
	require.NoError(t, os.Mkdir(b, 0o755))
	out := list()
	require.Len(t, out, 1)
	require.Contains(t, out[0].(map[string]any)["reason"], "deleted or replaced after it was opened: restart the server")

	p = startWith(t, Options{}, b)
	require.Empty(t, list())
	require.NoError(t, os.RemoveAll(b))
	require.NoError(t, os.Mkdir(b, 0o755))
	require.Len(t, list(), 1)
	p.write(changed)
	p.answer(p.question(), b)
	require.Empty(t, list(), "the client has named it again")
}

// A request that was cancelled is not answered.
//
// Clause M8.
func TestCancelledRequests(t *testing.T) {
	cancel := func(id string) string {
		return `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `,"reason":"x"}}`
	}
	for _, modern := range []bool{false, true} {
		t.Run(fmt.Sprintf("modern %v", modern), func(t *testing.T) {
			started := make(chan struct{}, 10)
			p := start(t, Options{Roots: rootSet(t, tree(t, map[string]string{"f": "x"})),
				Permit: func(ctx context.Context, _ tools.Change) error {
					started <- struct{}{}
					<-ctx.Done()
					return context.Cause(ctx)
				}})
			ask := func(id, tool, arguments string) string {
				line := call(1, tool, arguments)
				if modern {
					line = callModern(1, withoutRoots, tool, arguments, "")
				}
				return strings.Replace(line, `"id":1,`, `"id":`+id+`,`, 1)
			}
			if !modern {
				p.begin(withoutRoots)
			}
			for _, id := range []string{"7", `"seven"`, `"7"`} {
				p.write(ask(id, "write_file", `{"path":"new","content":"x"}`))
				<-started
				p.write(cancel(`"another"`), cancel("null"), cancel("{}"), cancel(id), cancel(id))
			}
			// The next answers are those to other requests.
			p.write(ask("8", "list_roots", `{}`))
			require.Equal(t, 8.0, p.read().ID)
			p.write(cancel("8"), ask("9", "list_roots", `{}`)) // it is answered already
			require.Equal(t, 9.0, p.read().ID)
		})
	}
}
