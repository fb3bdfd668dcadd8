package proxy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"

	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/acp/proxy"
	"github.com/acp-agent/acp-agent/internal/test/memstore"
	"github.com/acp-agent/acp-agent/internal/test/scripted"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// subagentClient is a client that notes what it is sent about sessions and their subagents. It
// calls sessions P and subagents C1, C2 and so on, in the order in which it has seen them.
type subagentClient struct {
	*testClient
	t     *testing.T
	names map[string]string
	seen  chan string
}

var subagentIDs = regexp.MustCompile(`sess_[A-Z0-9]+(\.sub_[a-z0-9]+)?`)

// subagents connects a client with capabilities to an agent that follows a script.
func subagents(
	t *testing.T, store sessionstore.Store, script, capabilities string,
) *subagentClient {
	v := &subagentClient{t: t, names: make(map[string]string), seen: make(chan string, 1000)}
	c, _ := scripted.Command(t, script)
	ask := func(name string) func(context.Context, json.RawMessage) (json.RawMessage, error) {
		return func(_ context.Context, params json.RawMessage) (json.RawMessage, error) {
			v.seen <- name + " " + v.named(params)
			return json.RawMessage(
				`{"outcome":{"outcome":"selected","optionId":"y"},"content":"text","n":1.0}`), nil
		}
	}
	v.testClient = through(t, c, store, client.Options{
		Capabilities: json.RawMessage(capabilities),
		Updates: func(_ context.Context, u client.Update) {
			if u.Kind != "session_info_update" && u.Kind != "available_commands_update" ||
				strings.Contains(u.SessionID, ".") {
				v.seen <- v.named(u.Params)
			}
		},
		ReadTextFile: func(
			_ context.Context, r sdk.ReadTextFileRequest,
		) (sdk.ReadTextFileResponse, error) {
			v.seen <- "read " + filepath.Base(r.Path)
			return sdk.ReadTextFileResponse{Content: "text"}, nil
		},
		Requests: map[string]func(context.Context, json.RawMessage) (json.RawMessage, error){
			"session/request_permission": ask("permission"), "_x/ask": ask("ask"),
			"elicitation/create": ask("elicitation"),
		},
	})
	return v
}

// questionIDs are the ids that questions to clients have.
var questionIDs = regexp.MustCompile(`"_meta":\{"acp-agent":\{"question":"[^"]*"\}\},`)

// named returns JSON with names in the place of ids. It is called for one message at a time.
func (v *subagentClient) named(raw []byte) string {
	raw = questionIDs.ReplaceAll(raw, nil)
	return subagentIDs.ReplaceAllStringFunc(string(raw), func(id string) string {
		if !strings.Contains(id, ".") {
			return "P"
		}
		if v.names[id] == "" {
			v.names[id] = fmt.Sprintf("C%d", len(v.names)+1)
		}
		return v.names[id]
	})
}

// idOf returns the id of a session by its name.
func (v *subagentClient) idOf(name string) string {
	for id, n := range v.names {
		if n == name {
			return id
		}
	}
	return ""
}

// next returns the next n notes.
func (v *subagentClient) next(n int) []string {
	v.t.Helper()
	var notes []string
	for range n {
		notes = append(notes, <-v.seen)
	}
	return notes
}

// say returns the line of a script that sends an update about a session of the agent.
func say(id, update string) string {
	return fmt.Sprintf(`send {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":%q,`+
		`"update":%s}}`+"\n", id, update)
}

// announce returns the line of a script that announces a subagent.
func announce(parent, id, members string) string {
	return say(parent, `{"sessionUpdate":"subagent_update","sessionId":"`+id+`"`+members+`}`)
}

func chunkOf(text string) string {
	return `{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"` + text + `"}}`
}

// closed is the end of a script in which the session is closed.
const closed = "await session/close\n" + `answer session/close {}` + "\n"

const declared = `{"subagents":{}}`

// family returns the parts of testdata/family.txtar: the agent's script, and what a client sees.
func family(t *testing.T) (script string, seen []string) {
	t.Helper()
	archive, err := txtar.ParseFile("testdata/family.txtar")
	require.NoError(t, err)
	return string(archive.Files[0].Data), strings.Split(strings.TrimSpace(string(archive.Files[1].Data)), "\n")
}

// Clause A36. What subagents do reaches the client in order, under ids of ours, in the turn and
// after it; a cancel of theirs reaches the agent.
func TestSubagents(t *testing.T) {
	store := memstore.New(t)
	script, seen := family(t)
	v := subagents(t, store, script,
		`{"subagents":{},"elicitation":{"form":{}}}`)
	s := v.open(roots(t, 0))
	_, err := v.Prompt(t.Context(), s.ID, sdk.TextBlock("go"))
	require.NoError(t, err)
	require.Equal(t, seen, v.next(len(seen)))
	require.NoError(t, v.Cancel(t.Context(), v.idOf("C2"))) // it may not be cancelled
	require.NoError(t, v.Cancel(t.Context(), v.idOf("C1")))
	require.Equal(t, []string{`{"sessionId":"P","update":{"sessionUpdate":"subagent_update",` +
		`"sessionId":"C1","state":{"state":"idle","stopReason":"cancelled"}}}`}, v.next(1))

	t.Run("nothing else can be done to a subagent", func(t *testing.T) {
		for _, method := range []string{"session/prompt", "session/set_mode", "session/load",
			"session/resume", "session/fork", "_x/do"} {
			params := fmt.Sprintf(`{"sessionId":%q,"cwd":"/","mcpServers":[],"prompt":[],`+
				`"modeId":"m"}`, v.idOf("C1"))
			_, err := v.Call(t.Context(), method, json.RawMessage(params))()
			refused := new(client.Error)
			require.ErrorAs(t, err, &refused, method)
			require.Equal(t, -32002, refused.Code, method)
		}
		var listed []string
		for s, err := range v.Sessions(t.Context(), client.Query{}) {
			require.NoError(t, err)
			listed = append(listed, s.ID)
		}
		require.Equal(t, []string{s.ID}, listed)
	})
	require.NoError(t, v.CloseSession(t.Context(), s.ID))
}

// Clause A36. A load in another process shows the same under the same ids. Nothing is known any
// more of a subagent that was working.
func TestSubagentsAfterLoad(t *testing.T) {
	store, roots := memstore.New(t), roots(t, 0)
	script, seen := family(t)
	script, _, _ = strings.Cut(script, "await session/cancel\n")
	v := subagents(t, store, script+closed, `{"subagents":{},"elicitation":{"form":{}}}`)
	s := v.open(roots)
	_, err := v.Prompt(t.Context(), s.ID, sdk.TextBlock("go"))
	require.NoError(t, err)
	v.next(len(seen))
	require.NoError(t, v.CloseSession(t.Context(), s.ID))

	again := subagents(t, store, plain+opened, declared)
	again.load(s.ID, roots)
	want := []string{`{"sessionId":"P","update":{"sessionUpdate":"user_message_chunk",` +
		`"content":{"text":"go","type":"text"}}}`}
	for _, line := range seen {
		switch {
		case strings.HasPrefix(line, "permission "): // the tool call that it was about
			want = append(want, `{"sessionId":"C2","update":{"sessionUpdate":"tool_call",`+
				`"toolCallId":"t","title":"Edit"}}`)
		case !strings.HasPrefix(line, "elicitation "):
			want = append(want, line)
		}
	}
	want = append(want,
		`{"sessionId":"C2","update":{"sessionUpdate":"tool_call_update","status":"failed",`+
			`"toolCallId":"t"}}`,
		`{"sessionId":"P","update":{"capabilities":null,"sessionId":"C1",`+
			`"sessionUpdate":"subagent_update","state":null}}`)
	require.Equal(t, want, again.next(len(want)))
	for id, name := range v.names {
		require.Equal(t, name, again.names[id])
	}
}

// Clause A36.
func TestSubagentsStayInTheSessionsFolders(t *testing.T) {
	roots := roots(t, 2)
	inside := filepath.Join(roots.Cwd().String(), "tree")
	deeper := filepath.Join(inside, "deeper")
	outside := t.TempDir()
	for _, dir := range []string{inside, deeper} {
		require.NoError(t, os.Mkdir(dir, 0o700))
	}
	for _, dir := range []string{roots.Cwd().String(), inside, deeper, outside} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "f"), nil, 0o600))
	}
	extra := roots.Additional().At(0).String()
	require.NoError(t, os.WriteFile(filepath.Join(extra, "f"), nil, 0o600))
	n := 0
	read := func(id, dir string) string {
		n++
		return fmt.Sprintf(`send {"jsonrpc":"2.0","id":%d,"method":"fs/read_text_file","params":`+
			`{"sessionId":%q,"path":%q}}`+"\nawait reply %[1]d\n", n, id, filepath.Join(dir, "f"))
	}
	script := capable + opened + "await session/prompt\n" +
		announce("child-1", "inherits", "") + read("inherits", extra) + read("inherits", outside) +
		announce("child-1", "narrow", fmt.Sprintf(`,"cwd":%q,"additionalDirectories":[]`, inside)) +
		read("narrow", inside) + read("narrow", roots.Cwd().String()) + read("narrow", extra) +
		announce("narrow", "below", fmt.Sprintf(`,"cwd":%q,"additionalDirectories":[%q,%q]`,
			roots.Cwd().String(), deeper, extra)) +
		read("below", inside) + read("below", extra) + read("below", outside) +
		announce("child-1", "wide", fmt.Sprintf(`,"cwd":%q,"additionalDirectories":[%q,"rel",%q]`,
			outside, outside, extra)) +
		read("wide", outside) + read("wide", extra) +
		announce("child-1", "many", `,"additionalDirectories":[`+
			strings.Repeat(fmt.Sprintf("%q,", extra), 999)+fmt.Sprintf("%q]", extra)) +
		answered
	c, record := scripted.Command(t, script)
	seen := make(chan string, 100)
	cl := through(t, c, memstore.New(t), client.Options{
		Capabilities: json.RawMessage(declared),
		Updates: func(_ context.Context, u client.Update) {
			if u.Kind == "subagent_update" {
				seen <- string(u.Update)
			}
		},
		ReadTextFile: func(
			context.Context, sdk.ReadTextFileRequest,
		) (sdk.ReadTextFileResponse, error) {
			return sdk.ReadTextFileResponse{Content: "ok"}, nil
		},
	})
	s := cl.open(roots)
	_, err := cl.Prompt(t.Context(), s.ID, sdk.TextBlock("go"))
	require.NoError(t, err)
	var answers []bool
	for _, line := range linesOf(t, record, "") {
		answers = append(answers, strings.Contains(line, `"result"`))
	}
	require.Equal(t, []bool{true, false, true, false, false, true, false, false, false, true},
		answers)
	require.NotContains(t, <-seen, `"cwd"`)
	require.Contains(t, <-seen, fmt.Sprintf(`"cwd":%q,"additionalDirectories":[]}`, inside))
	require.Contains(t, <-seen,
		fmt.Sprintf(`"cwd":null,"additionalDirectories":[%q]}`, deeper))
	require.Contains(t, <-seen,
		fmt.Sprintf(`"cwd":null,"additionalDirectories":[%q]}`, extra))
	require.Equal(t, workspace.DefaultMaxRoots, strings.Count(<-seen, extra))
}

const loads = "await initialize\n" + `answer initialize {"protocolVersion":1,"agentCapabilities":` +
	`{"loadSession":true,"sessionCapabilities":{"close":{}}}}` + "\n"

// replays are the lines of a script in which the agent replays a conversation with a subagent.
func replays() string {
	return say("child-1", `{"sessionUpdate":"user_message_chunk","content":{"type":"text",`+
		`"text":"go"}}`) + announce("child-1", "kid", `,"state":{"state":"running"}`) +
		say("kid", chunkOf("found")) + say("child-1", chunkOf("Done.")) +
		announce("child-1", "kid", `,"state":{"state":"idle"}`)
}

// Clauses A36 and P7. What the agent replays of subagents is stored like the rest, and later shown
// under the same ids. Subagents of a replay that is not shown are known too.
func TestSubagentsInTheAgentsReplay(t *testing.T) {
	store, roots := memstore.New(t), roots(t, 0)
	v := subagents(t, store, loads+opened+closed, declared)
	s := v.open(roots)
	require.NoError(t, v.CloseSession(t.Context(), s.ID))

	want := []string{
		`{"sessionId":"P","update":{"sessionUpdate":"user_message_chunk","content":` +
			`{"type":"text","text":"go"}}}`,
		`{"sessionId":"P","update":{"sessionUpdate":"subagent_update","sessionId":"C1",` +
			`"state":{"state":"running"}}}`,
		`{"sessionId":"C1","update":` + chunkOf("found") + `}`,
		`{"sessionId":"P","update":` + chunkOf("Done.") + `}`,
		`{"sessionId":"P","update":{"sessionUpdate":"subagent_update","sessionId":"C1",` +
			`"state":{"state":"idle"}}}`,
	}
	more := "await session/prompt\n" + say("kid", chunkOf("more")) + answered + closed
	again := subagents(t, store, loads+"await session/load\n"+replays()+
		"answer session/load {}\n"+more, declared)
	again.load(s.ID, roots)
	require.Equal(t, want, again.next(len(want)))
	kid := again.idOf("C1")
	_, err := again.Prompt(t.Context(), s.ID, sdk.TextBlock("on"))
	require.NoError(t, err)
	require.Equal(t, []string{`{"sessionId":"C1","update":` + chunkOf("more") + `}`}, again.next(1))
	require.NoError(t, again.CloseSession(t.Context(), s.ID))

	stored := subagents(t, store, plain+opened, declared)
	stored.load(s.ID, roots)
	require.Equal(t, want, stored.next(len(want)), "what the agent replayed is the history")
	require.Equal(t, kid, stored.idOf("C1"))

	resumed := subagents(t, store, loads+"await session/load\n"+replays()+
		"answer session/load {}\n"+more, declared)
	_, err = resumed.ResumeSession(t.Context(), s.ID, client.Setup{Roots: roots})
	require.NoError(t, err)
	_, err = resumed.Prompt(t.Context(), s.ID, sdk.TextBlock("on"))
	require.NoError(t, err)
	require.Equal(t, []string{`{"sessionId":"C1","update":` + chunkOf("more") + `}`},
		resumed.next(1))
	require.Equal(t, kid, resumed.idOf("C1"))
}

// Clause A36. An agent cannot move a subagent to another session, or take the id of one, and a
// session has a limited number of subagents.
func TestAnnouncementsThatAreRefused(t *testing.T) {
	second := openedAgain
	b := initialized(t, capable+opened+second+"await session/prompt\n"+
		announce("child-1", "kid", "")+
		announce("child-2", "kid", `,"title":"stolen"`)+
		announce("kid", "kid", `,"title":"its own parent"`)+
		announce("child-1", "child-1", "")+announce("child-1", "child-2", "")+
		announce("child-1", "", "")+announce("child-1", strings.Repeat("x", 2000), "")+
		announce("child-2", "other", "")+announce("child-2", "many", "")+
		announce("child-2", "too many", "")+say("too many", chunkOf("lost"))+
		say("kid", chunkOf("heard"))+answered+
		closed+"await session/prompt\n"+say("kid", chunkOf("late"))+answered,
		proxy.Options{}.With(proxy.Limits{MaxSubagents: 2}))
	s, _ := b.open()
	other, _ := b.open()
	_, err := b.prompt(s)
	require.NoError(t, err)
	for _, want := range []string{`host update {"update":{"sessionUpdate":"subagent_update"`,
		`host update {"update":{"sessionUpdate":"subagent_update"`,
		`host update {"update":{"sessionUpdate":"subagent_update"`,
		`host update {"sessionId":"sub_`} {
		got := b.client.next()
		require.True(t, strings.HasPrefix(got, want), got)
		require.NotContains(t, got, "title")
		require.NotContains(t, got, "lost")
	}
	require.NoError(t, s.Close(t.Context()))
	_, err = b.prompt(other)
	require.NoError(t, err)
	b.client.silent()
}

// Clause A36. After a crash nothing is known any more of a subagent that was working.
func TestSubagentsAfterACrash(t *testing.T) {
	v := subagents(t, memstore.New(t), plain+opened+"await session/prompt\n"+
		announce("child-1", "kid", `,"state":{"state":"running"}`)+
		announce("kid", "below", `,"state":{"state":"running"}`)+
		announce("kid", "idle", "")+"exit 3\n", declared)
	s := v.open(roots(t, 0))
	_, err := v.Prompt(t.Context(), s.ID, sdk.TextBlock("go"))
	require.Error(t, err)
	v.next(3)
	_, err = v.Prompt(t.Context(), s.ID, sdk.TextBlock("go"))
	require.Error(t, err)
	lost := func(parent, subagent string) string {
		return `{"sessionId":"` + parent + `","update":{"capabilities":null,"sessionId":"` + subagent +
			`","sessionUpdate":"subagent_update","state":null}}`
	}
	require.ElementsMatch(t, []string{lost("P", "C1"), lost("C1", "C2")}, v.next(2))
}
