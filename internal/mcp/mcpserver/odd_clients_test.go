package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/workspace"
	"github.com/acp-agent/acp-agent/workspace/tools"
)

// One entry that is wrong does not cost the others.
//
// Clauses M10, M12.
func TestBadEntriesAmongRoots(t *testing.T) {
	a := tree(t, map[string]string{"f": "in a"})
	good := strings.TrimSuffix(strings.TrimPrefix(rootsResult(a), `{"roots":[`), "]}")
	short, err := json.Marshal("file:" + filepath.ToSlash(a))
	require.NoError(t, err)
	for entry, says := range map[string]string{
		`{"uri":7}`:                       `"7"`,
		`{"uri":{"path":"/x"}}`:           "path",
		`"file:///x"`:                     "file:///x",
		`7`:                               `"7"`,
		`[]`:                              "left out",
		`{"uri":"file:///x","name":7}`:    "file:///x",
		`{"name":"x"}`:                    "it has no uri",
		`null`:                            "it has no uri",
		`{"uri":` + string(short) + `}`:   "",
		`{"uri":"https://example.com/x"}`: "https://example.com/x",
	} {
		result := `{"roots":[` + entry + "," + good + `]}`
		check := func(p *peer, id int) {
			m := p.answerTo(float64(id))
			require.Contains(t, m.text(), a, entry)
			require.Contains(t, m.text(), says, entry)
			require.NotRegexp(t, `Go |mcp\.|unmarshal`, m.line)
		}
		p := start(t, Options{})
		p.begin(withRoots)
		p.answerRaw(p.question(), result)
		p.write(call(1, "list_roots", "{}"))
		check(p, 1)
		p = start(t, Options{})
		p.callAnswered(2, "list_roots", "{}", result)
		check(p, 2)
	}
	p := start(t, Options{})
	p.begin(withRoots)
	p.answerRaw(p.question(), `{"roots":7}`)
	p.write(call(1, "list_roots", "{}"))
	m := p.until(func(m message) bool {
		if m.Method == "roots/list" {
			p.answerRaw(m, `{"roots":7}`)
		}
		return m.Method == ""
	})
	require.Contains(t, m.text(), "the client did not list its roots: its answer is malformed")
}

// A client that never answers costs its time once.
//
// Clauses M9, M10.
func TestClientThatDoesNotAnswer(t *testing.T) {
	for name, answer := range map[string]func(*peer, message){
		"silent": func(*peer, message) {},
		"refuses": func(p *peer, question message) {
			id, _ := json.Marshal(question.ID)
			p.write(`{"jsonrpc":"2.0","id":` + string(id) + `,"error":{"code":-32601,"message":"no roots"}}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, Options{Timeout: 50 * time.Millisecond})
			p.begin(withRoots)
			answer(p, p.question())
			p.write(call(1, "read_file", read("f")))
			m := p.until(func(m message) bool {
				if m.Method == "roots/list" {
					answer(p, m)
				}
				return m.Method == "" && m.ID == float64(1)
			})
			require.Contains(t, m.text(), "the client did not list its roots")
		})
	}
}

func TestBatches(t *testing.T) {
	const batch = `[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/x"},7,` +
		`{"jsonrpc":"2.0","id":2,"method":"tools/list"}]`
	p := start(t, Options{})
	p.write(strings.Replace(initialize(withoutRoots), "2025-11-25", "2025-03-26", 1))
	require.Equal(t, "2025-03-26", p.answerTo(0).Result["protocolVersion"])
	p.write(initialized, batch)
	answered := map[any]bool{}
	for range 3 {
		m := p.read()
		answered[m.ID] = true
		require.Equal(t, m.ID == nil, m.Error != nil, m.line)
	}
	require.Equal(t, map[any]bool{1.0: true, 2.0: true, nil: true}, answered)

	p = start(t, Options{})
	p.begin(withoutRoots)
	p.write(batch)
	require.Equal(t, -32600, p.read().Error.Code, "no other revision has them")
}

// No error has the code 0, which JSON-RPC does not define.
func TestErrorsHaveCodes(t *testing.T) {
	p := start(t, Options{})
	p.write(call(9, "list_roots", "{}"))
	require.Equal(t, -32600, p.answerTo(9).Error.Code)
	p.begin(withoutRoots)
	p.write(initialize(withoutRoots))
	m := p.answerTo(0)
	require.NotNil(t, m.Error, m.line)
	require.Equal(t, -32600, m.Error.Code, m.line)

	s := overHTTP(t, Options{})
	for _, body := range []string{call(1, "list_roots", "{}"), request("tools/list", "{}")} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL, strings.NewReader(body))
		require.NoError(t, err)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		response, err := s.Client().Do(r)
		require.NoError(t, err)
		answer, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.NotContains(t, string(answer), `"code":0`)
		require.Contains(t, string(answer), `"code":-32600`)
	}
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
	roots, err := workspace.NewRoots(a, nil)
	require.NoError(t, err)
	p := start(t, Options{Roots: roots})
	p.begin(withoutRoots)
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

func TestNewPromptIsAnnounced(t *testing.T) {
	a := tree(t, map[string]string{"f": ""})
	roots, err := workspace.NewRoots(a, nil)
	require.NoError(t, err)
	p := start(t, Options{Roots: roots, limits: limits{promptsAge: time.Nanosecond}})
	p.begin(withoutRoots)
	p.write(request("prompts/list", "{}"))
	require.Contains(t, p.answerTo(1).line, `"prompts":[]`)
	require.NoError(t, os.MkdirAll(filepath.Join(a, ".claude/commands"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(a, ".claude/commands/mend.md"), []byte("Mend it."), 0o644))
	p.write(call(2, "list_roots", "{}"))
	methods := []string{p.readAny().Method, p.readAny().Method}
	require.ElementsMatch(t, []string{"", promptsChanged}, methods)
}

// What is gone is not listed as accessible, and what is in its place is not used.
//
// Clause C8.
func TestRootThatIsGoneIsLeftOut(t *testing.T) {
	a, b := tree(t, map[string]string{"f": "in a"}), tree(t, map[string]string{"f": "in b"})
	roots, err := workspace.NewRoots(a, []string{b})
	require.NoError(t, err)
	p := start(t, Options{Roots: roots})
	p.begin(withoutRoots)
	list := func(id int) []any {
		p.write(call(id, "list_roots", "{}"))
		m := p.answerTo(float64(id))
		out, _ := structured(m)["left_out"].([]any)
		return out
	}
	require.Empty(t, list(1))
	require.NoError(t, os.RemoveAll(b))
	require.Len(t, list(2), 1)
	require.NoError(t, os.Mkdir(b, 0o755))
	out := list(3)
	require.Len(t, out, 1)
	require.Contains(t, out[0].(map[string]any)["reason"], "deleted or replaced after it was opened: restart the server")

	p = start(t, Options{})
	p.begin(withRoots)
	p.answer(p.question(), b)
	require.Empty(t, list(4))
	require.NoError(t, os.RemoveAll(b))
	require.NoError(t, os.Mkdir(b, 0o755))
	require.Len(t, list(5), 1)
	p.write(changed)
	p.answer(p.question(), b)
	require.Empty(t, list(6), "the client has named it again")
}

// A request that was cancelled is not answered, and its id can be used again.
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
			// The next answers are those to other requests, also with an id of before.
			p.write(ask("8", "list_roots", `{}`))
			require.Equal(t, 8.0, p.read().ID)
			p.write(cancel("8"), ask("8", "list_roots", `{}`)) // it is answered already
			require.Equal(t, 8.0, p.read().ID)
			// A call that was cancelled may still be ending: until then its id is in use.
			require.Eventually(t, func() bool {
				p.write(ask("7", "list_roots", `{}`))
				m := p.read()
				return m.ID == 7.0 && m.Error == nil
			}, patience, 5*time.Millisecond)
		})
	}
	p := start(t, Options{})
	p.write(initialize(withoutRoots), cancel("0"))
	require.Equal(t, 0.0, p.read().ID, "initialize cannot be cancelled")
}
