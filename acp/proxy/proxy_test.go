package proxy_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/acp/proxy"
	"github.com/acp-agent/acp-agent/acp/proxy/internal/child"
	"github.com/acp-agent/acp-agent/internal/test/memstore"
	"github.com/acp-agent/acp-agent/internal/test/scripted"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
)

// odd are members that do not survive decoding and encoding.
const odd = `"f":1.0,"e":1e5,"big":123456789012345678901234567890,"twice":1,"twice":2,` +
	`"u":"\u00e4\ud83d\ude00\/<&>","deep":{ "a" : [ 1 , null ] },"lone":"\ud800"`

// Clause P6.
func TestMessagesBeforeSession(t *testing.T) {
	update := `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"child-1",` +
		`"update":{"n":%s}}}` + "\n"
	b := initialized(t, plain+"await session/new\n"+"repeat 50 "+fmt.Sprintf(update, "$i")+
		`send {"jsonrpc":"2.0","id":7,"method":"_x/ask","params":{"sessionId":"child-1"}}`+"\n"+
		`send {"jsonrpc":"2.0","method":"_x/note","params":{"sessionId":"child-1"}}`+"\n"+
		`send {"jsonrpc":"2.0","id":8,"method":"_x/ask","params":{"sessionId":"child-2"}}`+"\n"+
		`answer session/new {"sessionId":"child-1"}`+"\n"+
		"repeat 50 "+fmt.Sprintf(update, "5$i")+
		"replies 2\n"+`send {"jsonrpc":"2.0","method":"_x/end"}`)
	b.client.answer("_x/ask", `{"n":1.0}`)
	b.open()
	for i := range 50 {
		require.Equal(t, fmt.Sprintf(`host update {"update":{"n":%d}}`, i), b.client.next())
	}
	require.Equal(t, `host call _x/ask {}`, b.client.next())
	require.Equal(t, `host notify _x/note {}`, b.client.next())
	for i := range 50 {
		require.Equal(t, fmt.Sprintf(`host update {"update":{"n":5%d}}`, i), b.client.next())
	}
	require.Equal(t, `client notify _x/end `, b.client.next())
	got := b.received("")
	require.ElementsMatch(t, []string{
		`{"jsonrpc":"2.0","id":7,"result":{"n":1.0}}`,
		`{"jsonrpc":"2.0","id":8,"error":{"code":-32602,` +
			`"message":"sessionId: no session has this id"}}`,
	}, got)
}

// lines are the lines that a client received, in order.
type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) tap(sent bool, line []byte) {
	if sent {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, string(line))
}

// order returns texts in the order of the first lines that contain them.
func (l *lines) order(texts ...string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []string
	for _, line := range l.all {
		for _, text := range texts {
			if strings.Contains(line, text) {
				found = append(found, text)
			}
		}
	}
	return found
}

// toolCalls returns the updates about tool calls so far.
func (l *lines) toolCalls(t *testing.T) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []string
	for _, line := range l.all {
		var m struct {
			Params struct{ Update json.RawMessage }
		}
		require.NoError(t, json.Unmarshal([]byte(line), &m))
		if strings.HasPrefix(string(m.Params.Update), `{"sessionUpdate":"tool_call`) {
			found = append(found, string(m.Params.Update))
		}
	}
	return found
}

// The child writes its response and what follows it at once, in each second turn after a cancel.
//
// Clause P6.
func TestOrderAfterResponse(t *testing.T) { overBoth(t, testOrderAfterResponse) }

func testOrderAfterResponse(t *testing.T) {
	const turns = 50
	var script strings.Builder
	script.WriteString(plain + opened)
	for i := range turns {
		fmt.Fprintf(&script, "await session/prompt\nsend "+update,
			fmt.Sprintf(`{"sessionUpdate":"_before %d."}`, i))
		reason := "end_turn"
		if i%2 == 1 {
			reason = "cancelled"
			script.WriteString("await session/cancel\n")
		}
		fmt.Fprintf(&script, `both {"jsonrpc":"2.0","id":$session/prompt$,`+
			`"result":{"stopReason":"%s","_meta":{"turn":"%d."}}} %s`, reason, i,
			fmt.Sprintf(update, fmt.Sprintf(`{"sessionUpdate":"_behind %d."}`, i)))
	}
	script.WriteString("await session/set_mode\n" +
		`both {"jsonrpc":"2.0","id":$session/set_mode$,"result":{"_meta":{"mode":"set"}}} ` +
		fmt.Sprintf(update, `{"sessionUpdate":"_behind mode"}`))
	script.WriteString("await authenticate\n" +
		`both {"jsonrpc":"2.0","id":$authenticate$,"result":{"_meta":{"login":"done"}}} ` +
		`{"jsonrpc":"2.0","method":"_x/behind login"}` + "\n" +
		"await _x/end\n" + `answer _x/end {}` + "\n")
	c, _ := scripted.Command(t, script.String())
	var got lines
	cl := through(t, c, memstore.New(t), client.Options{Trace: got.tap})
	s := cl.open(roots(t, 0))
	id := `{"sessionId":"` + s.ID + `",`
	for i := range turns {
		work := cl.Call(t.Context(), "session/prompt", json.RawMessage(id+`"prompt":[]}`))
		if i%2 == 1 {
			require.Eventually(t, func() bool {
				return len(got.order(fmt.Sprintf(`"_before %d."`, i))) == 1
			}, patience, 1e6)
			require.NoError(t, cl.Cancel(t.Context(), s.ID))
		}
		_, err := work()
		require.NoError(t, err)
	}
	_, err := cl.Call(t.Context(), "session/set_mode", json.RawMessage(id+`"modeId":"m"}`))()
	require.NoError(t, err)
	require.NoError(t, cl.Authenticate(t.Context(), "key"))
	_, err = cl.Call(t.Context(), "_x/end", json.RawMessage(id+`"x":1}`))()
	require.NoError(t, err)
	for i := range turns {
		want := []string{fmt.Sprintf(`"_before %d."`, i), fmt.Sprintf(`"turn":"%d."`, i),
			fmt.Sprintf(`"_behind %d."`, i)}
		require.Equal(t, want, got.order(want...))
	}
	for _, want := range [][]string{{`"mode":"set"`, `"_behind mode"`},
		{`"login":"done"`, `"_x/behind login"`}} {
		require.Equal(t, want, got.order(want...))
	}
}

// An update over the limit cannot be passed on. The user is told in its place.
//
// Clauses W3, P1.
func TestUpdateOverTheLimit(t *testing.T) {
	b := initialized(t, plain+opened+
		"send "+fmt.Sprintf(update, `{"sessionUpdate":"_before"}`)+
		"send "+fmt.Sprintf(update, `{"sessionUpdate":"_long","x":"`+strings.Repeat("x", 5000)+`"}`)+
		`send {"jsonrpc":"2.0","method":"_x/long","params":{"sessionId":"child-1","x":"`+
		strings.Repeat("x", 5000)+"\"}}\n"+
		"send "+fmt.Sprintf(update, `{"sessionUpdate":"_behind"}`),
		proxy.Options{}.WithChild(child.Limits{MaxLine: 4096}))
	b.open()
	require.Contains(t, b.client.next(), "_before")
	note := b.client.next()
	require.Contains(t, note, "longer than 4 KiB. It is left out.")
	require.Contains(t, note, `"note":true`)
	require.Contains(t, b.client.next(), "_behind")
}

// Clause P4.
func TestRequestsOutsideRoots(t *testing.T) {
	r := roots(t, 2)
	outside := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(outside, "secret"), []byte("s"), 0o600))
	inside := filepath.Join(r.At(1).String(), "file")
	require.NoError(t, os.WriteFile(inside, []byte("f"), 0o600))
	ask := func(id int, method, member, path string) string {
		return fmt.Sprintf(`send {"jsonrpc":"2.0","id":%d,"method":%q,`+
			`"params":{"sessionId":"child-1",%q:%s,"content":"","command":"c"}}`+
			"\nawait reply %[1]d\n",
			id, method, member, strconv.Quote(path))
	}
	c, record := scripted.Command(t, capable+opened+"await session/prompt\n"+
		ask(11, "fs/read_text_file", "path", inside)+
		ask(12, "fs/read_text_file", "path", filepath.Join(outside, "secret"))+
		ask(13, "fs/read_text_file", "path", filepath.Join(inside, "..", "..", "x"))+
		ask(14, "fs/write_text_file", "path", filepath.Join(outside, "new"))+
		ask(15, "terminal/create", "cwd", outside)+
		`send {"jsonrpc":"2.0","id":16,"method":"fs/read_text_file",`+
		`"params":{"sessionId":"someone else's","path":`+strconv.Quote(inside)+`}}`+
		"\nawait reply 16\n"+
		answered)
	var asked []string
	cl := through(t, c, memstore.New(t), client.Options{
		Capabilities: json.RawMessage(`{"terminal":true}`),
		Permission: func(context.Context, sdk.RequestPermissionRequest) (
			r sdk.RequestPermissionResponse, err error) {
			return r, jsonrpc.MethodNotFound("session/request_permission")
		},
		ReadTextFile: func(_ context.Context, q sdk.ReadTextFileRequest) (sdk.ReadTextFileResponse,
			error) {
			asked = append(asked, string(q.SessionId)+" "+q.Path)
			return sdk.ReadTextFileResponse{Content: "f"}, nil
		},
		WriteTextFile: func(context.Context, sdk.WriteTextFileRequest) (sdk.WriteTextFileResponse,
			error) {
			asked = append(asked, "write")
			return sdk.WriteTextFileResponse{}, nil
		},
		Requests: map[string]func(context.Context, json.RawMessage) (json.RawMessage, error){
			"terminal/create": func(context.Context, json.RawMessage) (json.RawMessage, error) {
				asked = append(asked, "terminal")
				return json.RawMessage(`{}`), nil
			},
		},
	})
	s := cl.open(r)
	_, err := cl.Prompt(t.Context(), s.ID, sdk.TextBlock("go"))
	require.NoError(t, err)
	require.Equal(t, []string{s.ID + " " + inside}, asked)
	answers := linesOf(t, record, "")
	require.Contains(t, answers[0], `"content":"f"`)
	for _, refused := range answers[1:6] {
		require.Contains(t, refused, `"code":-32602`)
	}
}

// Clause P6.
func TestOnlySessionIdsChange(t *testing.T) {
	c, _ := scripted.Command(t, capable+opened+"await session/prompt\n"+
		`send {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"child-1",`+
		`"update":{"sessionUpdate":"_unknown",`+odd+`}}}`+"\n"+
		`send {"jsonrpc":"2.0","id":"a","method":"_x/ask","params":{"sessionId":"child-1",`+odd+
		`}}`+"\nawait reply \"a\"\n"+
		`send {"jsonrpc":"2.0","method":"_x/note","params":{"sessionId":"child-1",`+odd+`}}`+"\n"+
		answered+
		"await session/prompt\nsend "+fmt.Sprintf(update, `{"sessionUpdate":"_started"}`)+
		"await session/cancel\n"+`answer session/prompt {"stopReason":"cancelled"}`+"\n"+
		"await session/close\n"+`answer session/close {}`+"\n")
	seen := make(chan string, 10)
	cl := through(t, c, memstore.New(t), client.Options{
		Updates: func(_ context.Context, u client.Update) { seen <- string(u.Params) },
		Notifications: func(_ context.Context, method string,
			params json.RawMessage) {
			seen <- method + " " + string(params)
		},
		Requests: map[string]func(context.Context, json.RawMessage) (json.RawMessage, error){
			"_x/ask": func(_ context.Context, params json.RawMessage) (json.RawMessage, error) {
				seen <- string(params)
				return json.RawMessage(`{` + odd + `}`), nil
			},
		},
	})
	roots := roots(t, 2)
	s := cl.open(roots)
	require.NotEqual(t, "child-1", s.ID)
	require.Contains(t, string(s.Result), `{"n":1.0}`)
	end, err := cl.Prompt(t.Context(), s.ID, sdk.TextBlock("hello"))
	require.NoError(t, err)
	require.Equal(t, `{"stopReason":"end_turn","_meta":{"n":1e0}}`, string(end.Result))
	id := `{"sessionId":"` + s.ID + `",`
	for _, want := range []string{
		id + `"update":{"sessionUpdate":"_unknown",` + odd + `}}`,
		id + odd + `}`,
		`_x/note ` + id + odd + `}`,
	} {
		got := <-seen
		// Package acp sends the session's title, and its own command as long as the child announces
		// none.
		for strings.Contains(got, `"session_info_update"`) ||
			strings.Contains(got, `"available_commands_update"`) {
			got = <-seen
		}
		require.Equal(t, want, got)
	}

	cancelled := cl.Call(t.Context(), "session/prompt", json.RawMessage(id+`"prompt":[]}`))
	for !strings.Contains(<-seen, `"_started"`) { // an earlier cancel would not reach the child
	}
	require.NoError(t, cl.Cancel(t.Context(), s.ID))
	result, err := cancelled()
	require.NoError(t, err)
	require.Equal(t, `{"stopReason":"cancelled"}`, string(result))

	additional := roots.Additional()
	var listed []string
	for s, err := range cl.Sessions(t.Context(), client.Query{Cwd: roots.Cwd(), Additional: &additional}) {
		require.NoError(t, err)
		listed = append(listed, s.ID)
	}
	require.Equal(t, []string{s.ID}, listed)
}

// Some agents mention an edit only in the permission request, and say nothing more about one that
// was rejected.
//
// Clause A27.
func TestToolCallsOfPermissionRequests(t *testing.T) {
	ask := func(id int, call string) string {
		return fmt.Sprintf(`send {"jsonrpc":"2.0","id":%d,"method":"session/request_permission",`+
			`"params":{"sessionId":"child-1","options":[`+
			`{"optionId":"go","kind":"allow_once","name":"Yes"},{"optionId":"stop",`+
			`"kind":"reject_once","name":"No"}],"toolCall":%s}}`, id, call) +
			fmt.Sprintf("\nawait reply %d\n", id)
	}
	edit := func(id string) string {
		return `{"toolCallId":"` + id +
			`","status":"pending","title":"Edit","kind":"edit","content":[{"type":"diff",` +
			`"path":"/a","newText":"n"}],"locations":null,"_meta":{"n":1.0}}`
	}
	shown := func(kind, members string) string {
		return `{"sessionUpdate":"` + kind + `",` +
			members[1:]
	}
	send := func(u string) string { return "send " + fmt.Sprintf(update, u) }
	recorded := func(id string) string {
		return shown("tool_call", `{"_meta":{"n":1.0},"content":[{"type":"diff","path":"/a",`+
			`"newText":"n"}],"kind":"edit","status":"pending","toolCallId":"`+id+`","title":"Edit"}`)
	}
	failed := func(id string) string {
		return shown("tool_call_update",
			`{"status":"failed","toolCallId":"`+id+`"}`)
	}
	done := shown("tool_call_update", `{"toolCallId":"allowed","status":"completed"}`)
	announced := shown("tool_call", `{"toolCallId":"announced","title":"Run"}`)
	untitled := `{"toolCallId":"untitled","title":null}`

	c, _ := scripted.Command(t, plain+opened+"await session/prompt\n"+
		ask(11, edit("allowed"))+send(done)+ask(12, edit("rejected"))+
		send(announced)+ask(13, `{"toolCallId":"announced"}`)+send(failed("announced"))+
		ask(14, edit("cancelled"))+ask(15, untitled)+ask(16, `{}`)+answered+openedAgain)
	var got lines
	cl := through(t, c, memstore.New(t), client.Options{
		Trace: got.tap,
		Permission: func(_ context.Context,
			r sdk.RequestPermissionRequest) (sdk.RequestPermissionResponse, error) {
			outcome := sdk.NewRequestPermissionOutcomeSelected("stop")
			switch r.ToolCall.ToolCallId {
			case "allowed":
				outcome = sdk.NewRequestPermissionOutcomeSelected("go")
			case "cancelled":
				outcome = sdk.NewRequestPermissionOutcomeCancelled()
			case "untitled":
				return sdk.RequestPermissionResponse{}, errors.New("cannot ask")
			}
			return sdk.RequestPermissionResponse{Outcome: outcome}, nil
		},
	})
	roots := roots(t, 0)
	s := cl.open(roots)
	_, err := cl.Prompt(t.Context(), s.ID, sdk.TextBlock("edit"))
	require.NoError(t, err)
	require.Equal(t, []string{done, announced, failed("announced")}, got.toolCalls(t),
		"the client learns the others from the requests")
	cl.load(s.ID, roots)
	require.Equal(t, []string{
		recorded("allowed"), done, recorded("rejected"), failed("rejected"), announced,
		failed("announced"),
		recorded("cancelled"), failed("cancelled"),
		shown("tool_call", `{"toolCallId":"untitled","title":"Tool call"}`), failed("untitled"),
	}, got.toolCalls(t)[3:], "a load shows each")
}

// Another server takes the session over while an agent asks the user. The question is answered, so
// that the agent can end its turn, and the user is told why it is withdrawn.
//
// Clause S11.
func TestTakeoverWhileTheAgentAsks(t *testing.T) {
	overBoth(t, func(t *testing.T) {
		asking, _ := scripted.Command(t, plain+opened+"await session/prompt\n"+
			`send {"jsonrpc":"2.0","id":11,"method":"session/request_permission","params":{`+
			`"sessionId":"child-1","toolCall":{"toolCallId":"t","title":"Edit"},"options":[`+
			`{"optionId":"go","kind":"allow_once","name":"Yes"}]}}`+"\nawait reply 11\n"+answered)
		other, _ := scripted.Command(t, plain+opened)
		store, roots := memstore.New(t), roots(t, 0)
		asked := make(chan bool, 1)
		var got lines
		old := through(t, asking, store, client.Options{Trace: got.tap,
			Permission: func(ctx context.Context, _ sdk.RequestPermissionRequest) (
				sdk.RequestPermissionResponse, error,
			) {
				asked <- true
				<-ctx.Done() // it is withdrawn
				return sdk.RequestPermissionResponse{}, ctx.Err()
			}})
		s := old.open(roots)
		ended := old.begin(s.ID, "edit")
		<-asked
		newer := through(t, other, store, client.Options{})
		newer.load(s.ID, roots)
		require.Contains(t, <-ended, "another window")
		told := []string{"$/cancel_request", `"outcome":"cancelled"`, "opened in another window. The rest"}
		require.Equal(t, told, got.order(told...), "the agent has its answer before the turn ends")
	})
}
