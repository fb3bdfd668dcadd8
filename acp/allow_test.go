package acp_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/workspace"
)

// toolCalls returns the updates about tool calls among messages.
func toolCalls(t *testing.T, messages []message) []string {
	all := []string{}
	for _, m := range messages {
		if m.Method != "session/update" {
			continue
		}
		var params struct{ Update json.RawMessage }
		require.NoError(t, json.Unmarshal(m.Params, &params))
		if bytes.HasPrefix(params.Update, []byte(`{"sessionUpdate":"tool_call`)) {
			all = append(all, string(params.Update))
		}
	}
	return all
}

const once = `[{"optionId":"yes","kind":"allow_once","name":"Yes"},{"optionId":"ever",` +
	`"kind":"allow_always","name":"Ever"},{"optionId":"no","kind":"reject_once","name":"No"}]`

// Clause A30.
func TestAllowReads(t *testing.T) {
	a, b, outside := folder(t), folder(t), folder(t)
	write := func(path ...string) string {
		file := filepath.Join(path...)
		require.NoError(t, os.WriteFile(file, []byte("text"), 0o600))
		return file
	}
	inA, inB, secret := write(a, "a.txt"), write(b, "b.txt"), write(outside, "secret")
	private := filepath.Join(b, "private")
	require.NoError(t, os.Mkdir(private, 0o700))
	denied, err := workspace.ParseDir(private)
	require.NoError(t, err)
	link, linked := filepath.Join(a, "link"), filepath.Join(a, "linked")
	linkTo(t, link, secret)
	require.NoError(t, os.Link(secret, linked))
	linkTo(t, filepath.Join(a, "toB"), inB)

	call := func(members map[string]any) string {
		request := map[string]any{"toolCallId": "t", "kind": "read", "title": "Read it",
			"locations": []any{map[string]any{"path": inA}}}
		for name, value := range members {
			if request[name] = value; value == nil {
				delete(request, name)
			}
		}
		return `{"toolCall":` + encode(request) + `,"options":` + once + `}`
	}
	at := func(paths ...string) map[string]any {
		locations := []any{}
		for _, path := range paths {
			locations = append(locations, map[string]any{"path": path, "line": 3})
		}
		return map[string]any{"locations": locations}
	}
	input := func(name string, value any) map[string]any {
		return map[string]any{"rawInput": map[string]any{"limit": 3, name: value}}
	}
	many := make([]string, 101)
	for i := range many {
		many[i] = inA
	}
	allowed := map[string]string{
		"a file in cwd":        call(nil),
		"files in other roots": call(at(inA, inB)),
		"a search in a directory": call(
			map[string]any{"kind": "search", "locations": at(a, b)["locations"]}),
		"a link to another root":     call(at(filepath.Join(a, "toB"))),
		"a file that does not exist": call(at(filepath.Join(b, "none"))),
		"a path among the input":     call(input("file_path", inB)),
		"a path only among the input": call(map[string]any{"locations": nil,
			"rawInput": map[string]any{"filePath": inB, "limit": 3}}),
		"a pattern":       call(input("pattern", `func \.\w+`)),
		"a relative path": call(input("path", "src/x..y")),
		"content": call(
			map[string]any{
				"content": []any{map[string]any{"type": "content",
					"content": map[string]any{"type": "text", "text": "x"}}}}),
		"no title": call(map[string]any{"title": nil}),
		"nothing else to choose but no": strings.Replace(call(nil),
			`,{"optionId":"ever","kind":"allow_always","name":"Ever"}`, "", 1),
	}
	asked := map[string]string{
		"an edit":         call(map[string]any{"kind": "edit"}),
		"a command":       call(map[string]any{"kind": "execute"}),
		"a deletion":      call(map[string]any{"kind": "delete"}),
		"another kind":    call(map[string]any{"kind": "other"}),
		"an unknown kind": call(map[string]any{"kind": "Read"}),
		"no kind":         call(map[string]any{"kind": nil}),
		"no id":           call(map[string]any{"toolCallId": nil}),
		"no locations":    call(map[string]any{"locations": nil}),
		"empty locations": call(at()),
		"no absolute path anywhere": call(map[string]any{"locations": nil,
			"rawInput": map[string]any{"path": "src"}}),
		"only the input, outside": call(map[string]any{"locations": nil,
			"rawInput": map[string]any{"filePath": secret}}),
		"too many locations":           call(at(many...)),
		"outside":                      call(at(secret)),
		"one of them outside":          call(at(inA, secret)),
		"a relative location":          call(at("a.txt")),
		"an empty location":            call(at("")),
		"a denied directory":           call(at(private)),
		"a file in a denied directory": call(at(write(private, "x"))),
		"a link to the outside":        call(at(link)),
		"a file with another name":     call(at(linked)),
		"up and out":                   call(at(a + "/../" + filepath.Base(outside) + "/secret")),
		"a command as a read":          call(input("command", "rm -rf .")),
		"a nested command": call(
			input("call", map[string]any{"Command-Line": []string{"sh"}})),
		"input that is not an object":  call(map[string]any{"rawInput": "cat a.txt; rm -rf ."}),
		"another path among the input": call(input("file_path", secret)),
		"another path in a list":       call(input("paths", []string{inA, secret})),
		"a path in the home directory": call(input("path", "~/.ssh/id_rsa")),
		"a path that goes up":          call(input("path", `..\..\x`)),
		"an address":                   call(input("uri", "file://"+inA)),
		"a diff": call(
			map[string]any{
				"content": []any{map[string]any{"type": "diff", "path": inA, "newText": "x"}}}),
		"a terminal": call(
			map[string]any{
				"content": []any{map[string]any{"type": "terminal", "terminalId": "1"}}}),
		"two kinds": strings.Replace(call(nil), `"kind":"read"`,
			`"kind":"edit","kind":"read"`, 1),
		"a kind in another case": strings.Replace(call(nil), `"kind":"read"`,
			`"kind":"edit","Kind":"read"`, 1),
		"no way to allow once":   strings.Replace(call(nil), "allow_once", "allow_always", 1),
		"two ways to allow once": strings.Replace(call(nil), "allow_always", "allow_once", 1),
		"no options":             strings.Replace(call(nil), once, "[]", 1),
		"not the right types": strings.Replace(call(nil), `"title":"Read it"`,
			`"title":[]`, 1),
	}
	var log bytes.Buffer
	for _, on := range []bool{true, false} {
		c := connect(t, acp.Options{
			AllowReads: on, Backend: using(&scripted{}), Logger: slog.New(slog.NewTextHandler(&log, nil)),
			Workspace: workspace.Options{Policy: workspace.Policy{Deny: []workspace.Dir{denied}}},
		})
		c.initialize()
		c.permit("no")
		id := c.open(a, b)
		check := func(name, request, option string) {
			t.Helper()
			questions := len(c.questions())
			request = strings.Replace(request, `"toolCallId":"t"`, `"toolCallId":`+encode(name), 1)
			answer := strings.Join(c.texts(id, "call session/request_permission "+request), "")
			require.Contains(t, answer, `"optionId":"`+option+`"`, name)
			if option == "no" {
				questions++
			}
			require.Len(t, c.questions(), questions, name)
		}
		for name, request := range allowed {
			if on {
				check(name, request, "yes")
			} else {
				check(name, request, "no")
			}
		}
		for name, request := range asked {
			check(name, request, "no")
		}
	}
	require.Contains(t, log.String(), "allowed the agent to read without asking")
	require.Contains(t, log.String(), inA)
}

// A person sees which tool calls were allowed without a question, whatever the agent says about
// them later, and in a load too.
//
// Clause A30.
func TestAllowedReadsAreMarked(t *testing.T) {
	a := folder(t)
	c := connect(t, acp.Options{AllowReads: true, Backend: using(&scripted{})})
	c.initialize()
	c.permit("no")
	id := c.open(a)
	ask := func(tool, kind string) []string {
		from := len(c.messages())
		c.texts(id, `call session/request_permission {"toolCall":{"toolCallId":"`+tool+`","kind":"`+kind+`","title":"Look","status":"pending","locations":[{"path":`+encode(a)+`}]},"options":`+once+`}`)
		return toolCalls(t, c.messages()[from:])
	}
	update := func(u string) []string {
		from := len(c.messages())
		c.texts(id, "update "+u)
		return toolCalls(t, c.messages()[from:])
	}
	titled := func(tool, title string) string {
		return `{"sessionUpdate":"tool_call_update","title":"` + title + `","toolCallId":"` + tool +
			`"}`
	}
	const marked = "Look (allowed by acp-agent)"
	announced := update(`{"sessionUpdate":"tool_call","toolCallId":"t1","title":"Look"}`)
	require.Len(t, announced, 1)
	require.Equal(t, []string{titled("t1", marked)}, ask("t1", "read"))
	unannounced := ask("t2", "search")
	require.Len(t, unannounced, 1)
	require.JSONEq(t,
		`{"sessionUpdate":"tool_call","toolCallId":"t2","kind":"search","title":"`+marked+`","status":"pending","locations":[{"path":`+encode(a)+`}]}`, unannounced[0])
	require.Equal(t, []string{titled("t1", marked)}, ask("t1", "read"), "it may ask again")
	require.Empty(t, ask("t3", "edit"))

	// The kind of a tool call that the request does not tell is the last one that the agent has
	// told.
	for _, kinds := range [][]string{{"read", ""}, {"other", "search"}} {
		update(`{"sessionUpdate":"tool_call","toolCallId":"t4","title":"Look","kind":"` + kinds[0] +
			`"}`)
		update(`{"sessionUpdate":"tool_call_update","toolCallId":"t4","kind":"` + kinds[1] + `"}`)
		require.Equal(t, []string{titled("t4", marked)}, ask("t4", "other"))
		require.Empty(t, ask("t4", "execute"))
	}
	update(`{"sessionUpdate":"tool_call_update","toolCallId":"t4","kind":"edit",` +
		`"status":"completed"}`)
	require.Empty(t, ask("t4", "other"))
	require.Empty(t, ask("t5", "other"))

	for _, u := range []string{titled("t1", "app"),
		`{"sessionUpdate":"tool_call_update","toolCallId":"t2","status":"completed","title":"app"}`} {
		got := update(u)
		require.Len(t, got, 2)
		require.Equal(t, u, got[0])
		require.Contains(t, got[1], `"title":"app (allowed by acp-agent)"`)
	}
	for _, u := range []string{
		`{"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"in_progress"}`,
		titled("t1", marked), titled("t3", "app"), titled("t2", "ended"),
	} {
		require.Equal(t, []string{u}, update(u))
	}
	from := len(c.messages())
	c.call("session/load", rootsParams(id, a))
	replayed := strings.Join(toolCalls(t, c.messages()[from:]), "\n")
	require.Equal(t, 7, strings.Count(replayed, marked), replayed)
	require.Contains(t, replayed, `"title":"app (allowed by acp-agent)"`)
}
