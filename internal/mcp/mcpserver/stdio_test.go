package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/logtest"
	"github.com/acp-agent/acp-agent/workspace"
	"github.com/acp-agent/acp-agent/workspace/tools"
)

// Clause M8.
func TestCallsWaitForTheFirstList(t *testing.T) {
	a, b := tree(t, map[string]string{"f": "in a"}), tree(t, map[string]string{"f": "in b"})
	p := start(t, Options{})
	p.write(initialize(withRoots), initialized, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`,
		call(2, "read_file", `{"path":"f"}`))
	var question message
	for seen := 0; seen < 3; {
		m := p.read()
		require.NotEqual(t, 2.0, m.ID, "answered before the roots were known: %s", m.line)
		if m.Method == "roots/list" {
			question = m
		}
		seen++
	}
	p.answer(question, a, b)
	require.Contains(t, p.answerTo(2).text(), "in a", "the first root is the base")
	require.Contains(t, p.ask("read_file", read(filepath.Join(b, "f"))).text(), "in b")
}

// Clause M8.
func TestClientWithoutRootsIsNotAsked(t *testing.T) {
	p := start(t, Options{})
	p.begin(withoutRoots)
	p.write(changed, call(1, "read_file", `{"path":"f"}`), call(2, "list_roots", `{}`))
	for range 2 {
		m := p.read()
		require.Empty(t, m.Method, "%s", m.line)
		switch m.ID {
		case 1.0:
			require.Contains(t, m.text(),
				"error: No files are accessible: the client has no roots capability")
			require.Contains(t, m.text(), "--dir")
		case 2.0:
			require.Equal(t, "none", structured(m)["source"])
			require.Contains(t, structured(m)["note"], "no roots capability")
		}
	}
}

// A client that has roots is not asked for them if there are configured ones.
//
// Clause M8.
func TestConfiguredRoots(t *testing.T) {
	p := start(t, Options{Roots: rootSet(t, tree(t, map[string]string{"f": "mine"}))})
	p.begin(withRoots)
	p.write(changed, call(1, "read_file", `{"path":"f"}`))
	m := p.until(func(m message) bool { require.Empty(t, m.Method); return m.ID == 1.0 })
	require.Contains(t, m.text(), "mine")
	require.Equal(t, "configured", structured(p.ask("list_roots", `{}`))["source"])
}

// Clause A24.
func TestRootsOfASession(t *testing.T) {
	first, second := tree(t, map[string]string{"f": "in first"}), tree(t,
		map[string]string{"f": "in second"})
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(first, link))
	var answer []workspace.Root
	var ended error
	p := start(t, Options{Session: func(context.Context) ([]workspace.Root, error) {
		return answer, ended
	}})
	p.begin(`{"roots":{"listChanged":true}}`)
	root := func(dir, real string) workspace.Root {
		d, err := workspace.ParseDir(dir)
		require.NoError(t, err)
		r, err := workspace.ParseDir(real)
		require.NoError(t, err)
		return workspace.Root{Dir: d, Real: r}
	}
	reads := func(path string) string {
		return p.ask("read_file", read(path)).text()
	}
	answer = []workspace.Root{root(link, first), root(second, second)}
	require.Contains(t, reads("f"), "in first", "A20")
	require.Contains(t, reads(filepath.Join(second, "f")), "in second")
	require.Equal(t, "session", structured(p.ask("list_roots", `{}`))["source"])

	answer = answer[:1]
	require.NotContains(t, reads(filepath.Join(second, "f")), "in second", "it was removed")
	answer = nil
	require.Contains(t, reads("f"), "no folders other than its working directory")
	answer = []workspace.Root{root(link, second)}
	require.Contains(t, reads("f"), "now points somewhere else")
	answer, ended = nil, errors.New("the session is over")
	require.Contains(t, reads("f"), "No files are accessible: the session is over")
}

// What the guard refuses is not served, by tools, prompts or what the instructions of folders say.
//
// Clause R5.
func TestGuard(t *testing.T) {
	dir := tree(t, map[string]string{".env": "hunter2", "a": "open hunter", "AGENTS.md": "Say hunter2.",
		".claude/commands/tell.md": "Tell hunter2."})
	p := start(t, Options{Roots: rootSet(t, dir), Permit: func(context.Context, tools.Change) error { return nil },
		Guard: func(_ context.Context, w *workspace.Workspace) (*workspace.Workspace, error) {
			return w.Checked(func(a workspace.Access, _ error) error {
				if a.Kind != workspace.Read || a.At.Rel() != "a" {
					return errors.New("no rule would")
				}
				return nil
			}), nil
		}})
	p.begin(withoutRoots)
	for i, c := range []string{
		call(1, "read_file", read(".env")), call(2, "read_files", `{"paths":[".env","a"]}`),
		call(3, "search", `{"pattern":"hunter","ignored":"include"}`),
		call(4, "edit_file", `{"path":".env","old_text":"hunter2","new_text":"x","dry_run":true}`),
		call(5, "delete_file", read(".env")), call(6, "write_file", `{"path":"new","content":"x"}`),
		call(7, "move_file", `{"path":"a","to":"b"}`),
	} {
		p.write(c)
		said := p.answerTo(float64(i + 1)).text()
		require.NotContains(t, said, "hunter2", c)
		require.Contains(t, said, "no rule would", c)
	}
	require.Contains(t, p.ask("read_file", read("a")).text(), "open hunter")
}

// Folders whose rules are not known are not listed as accessible.
func TestUnknownRules(t *testing.T) {
	p := start(t, Options{Roots: rootSet(t, tree(t, nil)),
		Guard: func(context.Context, *workspace.Workspace) (*workspace.Workspace, error) {
			return nil, errors.New("nobody knows")
		}})
	p.begin(withoutRoots)
	p.write(call(1, "list_roots", `{}`))
	require.Equal(t, "No files are accessible: the user's rules are not known: nobody knows.\n", p.answerTo(1).text())
}

// An agent finds the skills of all folders that it was not told about.
//
// Clause D1.
func TestSkillsOfASession(t *testing.T) {
	var roots []workspace.Root
	for r, n := range []int{20, 30, 131} {
		files := map[string]string{}
		for i := range n {
			name := fmt.Sprintf("s%d-%03d", r, i)
			files["skills/"+name+"/SKILL.md"] = "---\nname: " + name +
				"\ndescription: One of many.\n---\nText.\n"
		}
		dir, err := workspace.ParseDir(tree(t, files))
		require.NoError(t, err)
		roots = append(roots, workspace.Root{Index: r, Dir: dir, Real: dir})
	}
	p := start(t, Options{Session: func(context.Context) ([]workspace.Root, error) {
		return roots, nil
	}})
	p.begin(withoutRoots)
	found := p.ask("find_skills", `{"query":"s2-130 many"}`).text()
	require.True(t, strings.HasPrefix(found, "s2-130: One of many.\n  "+
		filepath.Join(roots[2].Dir.String(), "skills", "s2-130", "SKILL.md")+"\n"), found)
	require.Contains(t, found, "[161 more: ")
}

// Clause P6.
func TestOnlySomeTools(t *testing.T) {
	for _, only := range [][]string{{"find_skills"}, {}} {
		p := start(t, Options{Only: only, Context: "Heed it."})
		p.write(initialize(withoutRoots), initialized, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
		said := p.read()
		require.Contains(t, string(said.line), `"instructions":"Heed it."`)
		names := []string{}
		for _, tool := range p.answerTo(1).Result["tools"].([]any) {
			names = append(names, tool.(map[string]any)["name"].(string))
		}
		require.Equal(t, only, names)
		require.NotContains(t, string(said.line), `"prompts"`)
	}
}

// Clause M8.
func TestListExpiresWithoutListChanged(t *testing.T) {
	a, b := tree(t, map[string]string{"f": "in a"}), tree(t, map[string]string{"f": "in b"})
	p := start(t, Options{limits: limits{rootsAge: time.Nanosecond}})
	p.begin(`{"roots":{}}`)
	p.answer(p.question(), a)
	p.write(call(1, "read_file", `{"path":"f"}`))
	m := p.read()
	if m.Method == "" { // it waited for the first question
		require.Contains(t, m.text(), "in a")
		p.write(call(1, "read_file", `{"path":"f"}`))
		m = p.read()
	}
	require.Equal(t, "roots/list", m.Method)
	p.answer(m, b)
	require.Contains(t, p.answerTo(1).text(), "in b")
}

// Clause M9.
func TestChangeAppliesToTheNextCall(t *testing.T) {
	a, b := tree(t, map[string]string{"f": "in a"}), tree(t, map[string]string{"f": "in b"})
	p := startWith(t, Options{}, a)
	p.write(changed, call(1, "read_file", `{"path":"f"}`),
		call(2, "read_file", read(filepath.Join(a, "f"))))
	p.answer(p.question(), b)
	got := map[any]string{}
	for range 2 {
		m := p.read()
		got[m.ID] = m.text()
	}
	require.Contains(t, got[1.0], "in b")
	require.Contains(t, got[2.0], "error: ", "the old root is out of scope")
}

// Clause M9.
func TestLateAnswers(t *testing.T) {
	a, b := tree(t, map[string]string{"f": "in a"}), tree(t, map[string]string{"f": "in b"})
	p := start(t, Options{})
	p.begin(withRoots)
	first := p.question()
	p.write(changed, changed, changed, `{"jsonrpc":"2.0","id":5,"method":"ping"}`)
	require.NotNil(t, p.answerTo(5).Result, "served meanwhile")
	p.answer(first, a)
	second := p.question()
	p.answer(second, b)
	p.answer(first, a) // late, and twice
	p.write(call(1, "read_file", `{"path":"f"}`))
	m := p.read()
	require.Equal(t, 1.0, m.ID, "one question more, not three: %s", m.line)
	require.Contains(t, m.text(), "in b")
}

// Clause M10.
func TestInvalidRootsAreLeftOut(t *testing.T) {
	a := tree(t, map[string]string{"f": "in a"})
	missing := filepath.Join(a, "missing")
	log := &logtest.Text{}
	p := start(t, Options{Logger: log.Logger(slog.LevelInfo)})
	p.begin(withRoots)
	uri := `{"uri":"` + dirURI(t, a) + `"}`
	p.answerRaw(p.question(),
		`{"roots":[null,{"name":"x"},{"uri":"https://example.com"},{"uri":"file:///a/../b"},{"uri":"`+dirURI(t, missing)+
			`"},{"uri":"`+dirURI(t, filepath.Join(a, "f"))+`"},`+uri+`,`+uri+`]}`)
	p.write(call(1, "list_roots", `{}`), call(2, "read_file", `{"path":"f"}`))
	for range 2 {
		m := p.read()
		if m.ID == 2.0 {
			require.Contains(t, m.text(), "in a", "the first valid root is the base")
			continue
		}
		s := structured(m)
		require.Len(t, s["roots"], 1)
		require.Len(t, s["left_out"], 6)
		for _, reason := range []string{"no uri", `does not begin with`, `".." segment`,
			"no such directory", "not a directory"} {
			require.Contains(t, m.text(), reason)
			require.Contains(t, strings.ReplaceAll(log.String(), `\"`, `"`), reason)
		}
	}
	require.Equal(t, 6, strings.Count(log.String(), "left out"))
	p.write(changed)
	p.answerRaw(p.question(), `{"roots":[`+strings.Repeat(`{"uri":"x"},`, 500)+`{"uri":"y"}]}`)
	p.ask("list_roots", `{}`)
	require.Equal(t, 6+maxLeftOut, strings.Count(log.String(), "left out"))
}

// Clause M10.
func TestListWithoutValidRoots(t *testing.T) {
	a := tree(t, map[string]string{"f": "in a"})
	for name, answer := range map[string]string{
		"empty": `{"roots":[]}`, "null": `{"roots":null}`, "not a list": `{"roots":{}}`, "nothing": `{}`, "null entry": `{"roots":[null]}`, "missing": `{"roots":[{"uri":"file:///no/such"}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			p := startWith(t, Options{}, a)
			p.write(changed)
			p.answerRaw(p.question(), answer)
			p.write(call(1, "read_file", read(filepath.Join(a, "f"))))
			m := p.read()
			if m.Method == "roots/list" { // after an unreadable answer the server asks again
				p.answerRaw(m, answer)
				m = p.answerTo(1)
			}
			require.Contains(t, m.text(), "error: No files are accessible")
			p.write(changed)
			p.answer(p.question(), a)
			require.Contains(t, p.ask("read_file", read("f")).text(), "in a", "a valid list opens it")
		})
	}
}

// Clause M10.
func TestPolicyAppliesToClientRoots(t *testing.T) {
	outer := tree(t, map[string]string{"in/f": "in", "out/f": "out"})
	within, err := workspace.ParseDir(filepath.Join(outer, "in"))
	require.NoError(t, err)
	p := start(t, Options{Workspace: workspace.Options{
		Policy: workspace.Policy{Allow: []workspace.Dir{within}}}})
	p.begin(withRoots)
	p.answer(p.question(), filepath.Join(outer, "out"), filepath.Join(outer, "in"))
	m := p.ask("list_roots", `{}`)
	require.Contains(t, m.text(), "outside the directories that this server may serve")
	require.Len(t, structured(m)["roots"], 1)
}

// Clause M12.
func TestMalformedLines(t *testing.T) {
	a := tree(t, map[string]string{"f": "in a"})
	p := startWith(t, Options{MaxMessage: 10_000}, a)
	for _, c := range []struct {
		line string
		code int
		id   string // with which it is answered, as the client waits
		says string
	}{
		{"no JSON", -32700, "null", "not valid JSON"},
		{"\xff\xfe", -32700, "null", ""},
		{`{"jsonrpc":"2.0","id":11,"method":"ping"`, -32700, "null", "not valid JSON"},
		{"[]", -32600, "null", ""},
		{"7", -32600, "null", ""},
		{`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, -32600, "null", ""},
		{`{"jsonrpc":"1.0","id":7,"method":"ping"}`, -32600, "7", "not a JSON-RPC 2.0 message"},
		{`{"id":8,"method":"ping"}`, -32600, "8", "not a JSON-RPC 2.0 message"},
		{`{"jsonrpc":"2.0","id":{},"method":"ping"}`, -32600, "null", ""},
		{`{"jsonrpc":"2.0","id":[9],"method":"ping"}`, -32600, "null", "not a JSON-RPC 2.0 message"},
		{`{"a":"` + strings.Repeat("x", 20_000) + `"}`, -32600, "null", ""},
	} {
		p.write(c.line)
		m := p.read()
		require.NotNil(t, m.Error, "%.50q: %s", c.line, m.line)
		require.Equal(t, c.code, m.Error.Code, "%.50q: %s", c.line, m.line)
		require.Contains(t, m.line, `"id":`+c.id+`,`)
		require.Contains(t, m.line, c.says)
	}
	p.write("", "   ", `{"jsonrpc":"2.0","id":99,"result":{}}`,
		`{"jsonrpc":"2.0","method":"notifications/unknown"}`, changed)
	p.answerRaw(p.question(), `{"roots":[null,`+strings.Repeat(`{},`, 1000)+`{"uri":"`+dirURI(t,
		a)+`"}]}`)
	require.Contains(t, p.ask("list_roots", `{}`).text(), "No files",
		"what is behind the first thousand is not looked at")
}

// Clause M12.
func TestLastLineTooLong(t *testing.T) {
	server, err := Open(t.Context(), Options{MaxMessage: 10})
	require.NoError(t, err)
	defer server.Close()
	var out strings.Builder
	require.NoError(t, server.Serve(t.Context(), strings.NewReader(strings.Repeat("x", 100_000)),
		&out))
	require.Contains(t, out.String(), "longer than the limit of 10 bytes")
}

// Clause M9.
func TestEndOfInputDuringRootsList(t *testing.T) {
	p := start(t, Options{Timeout: time.Hour, limits: limits{grace: time.Hour}})
	p.begin(withRoots)
	p.question()
	p.write(call(1, "list_roots", `{}`))
	require.NoError(t, p.in.Close())
	require.Contains(t, p.answerTo(1).text(), "the client has disconnected")
	awaitEnd(t, p.ended)
}

// Clause M9.
func TestPendingCallsAreAnsweredAtTheEnd(t *testing.T) {
	a := tree(t, map[string]string{"f": "in a"})
	roots := rootSet(t, a)
	p := start(t, Options{Roots: roots})
	lines := []string{initialize(withoutRoots), initialized}
	for id := range 200 {
		lines = append(lines, call(id+1, "read_file", `{"path":"f"}`))
	}
	p.write(lines...)
	require.NoError(t, p.in.Close())
	answered := map[any]bool{}
	for m := range p.lines {
		answered[m.ID] = m.Error == nil
	}
	for id := range 200 {
		require.True(t, answered[float64(id+1)], fmt.Sprint(id+1))
	}
	require.NoError(t, <-p.ended)
}

// Results that hold whole files take much memory until they are written.
func TestFewCallsHoldFilesAtOnce(t *testing.T) {
	roots := rootSet(t, tree(t, map[string]string{"f": "text\n"}))
	begun, proceed := make(chan struct{}, 100), make(chan struct{})
	p := start(t, Options{Roots: roots, limits: limits{files: 2},
		Permit: func(ctx context.Context, _ tools.Change) error {
			begun <- struct{}{}
			<-proceed
			return nil
		}})
	p.begin(withoutRoots)
	for id := range 10 {
		p.write(call(id+1, "write_file", fmt.Sprintf(`{"path":"%d","content":""}`, id+1)))
		if id < 2 {
			<-begun
		}
	}
	require.Contains(t, p.ask("read_file", read("f")).text(), "text", "others do not wait")
	p.write(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":10}}`, call(12, "read_file", read("f")))
	require.Contains(t, p.answerTo(12).text(), "text")
	require.Empty(t, begun, "the others wait")
	close(proceed)
	for range 9 {
		m := p.read()
		require.False(t, strings.HasPrefix(m.text(), "error"))
		require.NotEqual(t, 10.0, m.ID, "it was cancelled")
	}
}

// Clause W11.
func TestClientThatDoesNotRead(t *testing.T) {
	for name, end := range map[string]func(stop context.CancelFunc, in io.Closer){
		"end of input": func(_ context.CancelFunc, in io.Closer) { _ = in.Close() },
		"signal":       func(stop context.CancelFunc, _ io.Closer) { stop() },
	} {
		t.Run(name, func(t *testing.T) {
			roots := rootSet(t, tree(t,
				map[string]string{"f": strings.Repeat("x\n", 20_000)}))
			server, err := Open(t.Context(), Options{Roots: roots,
				limits: limits{grace: 10 * time.Millisecond}})
			require.NoError(t, err)
			in, toServer := io.Pipe()
			fromServer, out := io.Pipe()
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			ended := make(chan error, 1)
			go func() { ended <- server.Serve(ctx, in, out) }()
			lines := initialize(withoutRoots) + "\n" + initialized + "\n"
			for id := range 8 {
				lines += call(id+1, "read_file", `{"path":"f"}`) + "\n"
			}
			_, err = io.WriteString(toServer, lines)
			require.NoError(t, err)
			end(stop, toServer)
			awaitEnd(t, ended)
			server.Close()
			require.NoError(t, fromServer.Close())
		})
	}
}

// Clauses M8, M10.
func TestListRootsWithAClosedScope(t *testing.T) {
	for name, c := range map[string]struct {
		answer string // to each question, "" for none
		note   string
		o      Options
	}{
		"an error": {`"error":{"code":-32603,"message":"not now"}`, "not now", Options{}},
		"a time-out": {"", "did not list its roots within 50ms",
			Options{Timeout: 50 * time.Millisecond}},
		"no URI":           {`"result":{"roots":[{"uri":7}]}`, "its answer is malformed", Options{}},
		"no answer at all": {`"result":null`, "", Options{}},
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, c.o)
			p.begin(withRoots)
			p.write(call(1, "list_roots", `{}`))
			m := p.until(func(m message) bool {
				if m.Method == "roots/list" && c.answer != "" {
					id, err := json.Marshal(m.ID)
					require.NoError(t, err)
					p.write(`{"jsonrpc":"2.0","id":` + string(id) + `,` + c.answer + `}`)
				}
				return m.ID == 1.0 && m.Method == ""
			})
			require.NotEqual(t, true, m.Result["isError"], m.line)
			require.Equal(t, "client", structured(m)["source"], m.line)
			require.Empty(t, structured(m)["roots"])
			require.Contains(t, structured(m)["note"], c.note)
		})
	}
}

// Clause M8.
func TestListDoesNotExpireWithListChanged(t *testing.T) {
	a := tree(t, map[string]string{"f": "in a"})
	p := startWith(t, Options{limits: limits{rootsAge: time.Nanosecond}}, a)
	for id := range 20 {
		p.write(call(id+1, "read_file", `{"path":"f"}`))
		m := p.read()
		require.Empty(t, m.Method, m.line)
		require.Contains(t, m.text(), "in a")
	}
}

// Clause M7.
func TestDeprecationIsLoggedOnce(t *testing.T) {
	a := tree(t, map[string]string{"f": "in a"})
	log := &logtest.Text{}
	p := startWith(t, Options{Logger: log.Logger(slog.LevelInfo)}, a)
	require.Contains(t, p.ask("read_file", read("f")).text(), "in a")
	require.NotContains(t, log.String(), "deprecates", "that revision does not")
	p = start(t, Options{Logger: log.Logger(slog.LevelInfo)})
	for range 3 {
		p.callAnswered(2, "read_file", `{"path":"f"}`, rootsResult(a))
		require.Contains(t, p.answerTo(2).text(), "in a")
	}
	require.Equal(t, 1, strings.Count(log.String(), "which this MCP revision deprecates"))
}

// Legacy clients may name their revision in each message, as modern ones must.
//
// Clause M7.
func TestLegacyClientNamesItsRevision(t *testing.T) {
	a := tree(t, map[string]string{"f": "in a"})
	p := startWith(t, Options{Timeout: patience}, a)
	p.write(strings.Replace(call(1, "read_file", `{"path":"f"}`), `"params":{`,
		`"params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2025-11-25"},`, 1))
	require.Contains(t, p.answerTo(1).text(), "in a")
}

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
		{map[string]string{"who": "Ada"}, "Greet Ada, $how."},
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
