package acp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/test/memstore"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// family is a scripted backend whose sessions have a subagent. A prompt may also be:
//
//	below UPDATE       the subagent sends an update
//	announce           the subagent is announced, as running
//	ask ROOT METHOD P  the subagent calls the client, and its folder is ROOT; the session answers with
//	                   what came of it
type family struct {
	scripted
	lost bool // the session no longer has the subagent
}

const subagent = "sub_a"

func (r *family) Open(
	ctx context.Context, a backend.Activation, h backend.Host,
) (backend.Session, backend.Opened, error) {
	s, opened, err := r.scripted.Open(ctx, a, h)
	return &familySession{Session: s, family: r, host: h}, opened, err
}

type familySession struct {
	backend.Session
	family *family
	host   backend.Host
}

func (s *familySession) CancelSubagent(key string, params backend.Raw) {
	s.family.note("cancel %s %s", key, params)
}

func (s *familySession) HasSubagent(key string) bool { return key == subagent && !s.family.lost }

func (s *familySession) Prompt(
	ctx context.Context, params backend.Raw, u backend.Updates,
) backend.Work {
	var p struct{ Prompt []struct{ Text string } }
	_ = json.Unmarshal(params, &p)
	verb, rest, _ := strings.Cut(p.Prompt[0].Text, " ")
	do := func() error {
		switch verb {
		case "announce":
			return s.host.Update(ctx, update(`{"update":{"sessionUpdate":"subagent_update",`+
				`"sessionId":"sub_a","capabilities":{"cancel":{}},"state":{"state":"running"}}}`))
		case "below":
			return s.host.Update(ctx, sessionstore.OfSubagent(subagent, update(`{"update":`+rest+`}`)))
		}
		root, rest, _ := strings.Cut(rest, " ")
		method, call, _ := strings.Cut(rest, " ")
		roots, err := workspace.NewRoots(root, nil)
		if err != nil {
			return err
		}
		result, err := s.host.For(backend.Sender{Subagent: subagent, Roots: roots}).Call(ctx, method, backend.Raw(call))()
		if err != nil {
			result = backend.Encode(err.Error())
		}
		return u.Update(ctx, backend.Text(string(result)))
	}
	switch verb {
	case "announce", "below", "ask":
		return func() (backend.Raw, error) { return backend.Stopped("end_turn"), do() }
	}
	return s.Session.Prompt(ctx, params, u)
}

const subagentSays = `below {"sessionUpdate":"agent_message_chunk","content":{"type":"text",` +
	`"text":"from below"}}`

// aboutSubagent returns the messages that a client was sent about subagents.
func aboutSubagent(messages []message) (about []string) {
	for _, m := range messages {
		if text := string(m.Params); strings.Contains(text, "sub_") ||
			strings.Contains(text, "subagent") {
			about = append(about, text)
		}
	}
	return about
}

// A client that has not declared subagents is told and asked nothing about them, also if it
// loads a session of another client.
//
// Clause A36.
func TestSubagentsNeedTheCapability(t *testing.T) {
	store, a := memstore.New(t), folder(t)
	first := connect(t, acp.Options{Store: store, Backend: using(&family{})})
	first.declaring(`{"subagents":{}}`)
	id := first.open(a)
	prompt := func(c *client, text string) {
		c.call("session/prompt", promptParams(id, text))
	}
	prompt(first, "announce")
	prompt(first, subagentSays)
	prompt(first, `below {"sessionUpdate":"notice","severity":"info","title":"n"}`)
	require.Len(t, aboutSubagent(first.messages()), 2, "and the client takes no notices")
	first.leave()

	second := connect(t, acp.Options{Store: store, Backend: using(&family{})})
	second.declaring(`{}`)
	second.permit("yes")
	second.call("session/load", rootsParams(id, a))
	prompt(second, "announce")
	prompt(second, subagentSays)
	prompt(second, "ask "+a+` session/request_permission {"toolCall":{"toolCallId":"t"},"options":`+
		once+`}`)
	about := aboutSubagent(second.messages())
	require.Len(t, about, 1)
	require.Contains(t, about[0], "the client does not offer session/request_permission for subagents")
	require.Empty(t, second.questions())
	second.leave()

	third := connect(t, acp.Options{Store: store, Backend: using(&family{})})
	third.declaring(`{"subagents":{}}`)
	third.call("session/load", rootsParams(id, a))
	require.Len(t, aboutSubagent(third.messages()), 5)
}

// Clause A36.
func TestSubagentsAfterJoin(t *testing.T) {
	dir, r := folder(t), &family{}
	s, _ := lasting(t, dir, acp.ServerOptions{}, acp.Options{Backend: using(r)})
	connect := func(capabilities string) *client {
		c := connectTo(t, s, acp.Peer{Principal: "ann", Remote: true})
		c.declaring(capabilities)
		return c
	}
	first := connect(`{"subagents":{}}`)
	id := first.open(dir)
	first.call("session/prompt", promptParams(id, "announce"))
	first.call("session/prompt", promptParams(id, subagentSays))
	first.beginTurn(id, "wait", "waiting")
	first.leave()

	second := connect(`{}`)
	second.call("session/load", rootsParams(id, dir))
	require.Empty(t, aboutSubagent(second.messages()))
	second.leave()

	third := connect(`{"subagents":{}}`)
	third.call("session/load", rootsParams(id, dir))
	require.Len(t, aboutSubagent(third.messages()), 2)
	third.send(notification("session/cancel", idParams(id+".sub_a")))
	third.send(notification("session/cancel", idParams(id)))
	third.await(0, ended(id))
	require.Subset(t, r.noted(), []string{`cancel sub_a {}`})

	other := connectTo(t, s, acp.Peer{Principal: "bob", Remote: true})
	other.declaring(`{"subagents":{}}`)
	other.send(notification("session/cancel", fmt.Sprintf(`{"sessionId":"%s.sub_a","y":1}`, id)))
	other.call("session/list", `{}`)
	require.NotContains(t, strings.Join(r.noted(), "\n"), `"y"`)
}

// Clause A36. A load shows that nothing is known of a subagent that the backend no longer has.
func TestSubagentsAfterLoad(t *testing.T) {
	for _, lost := range []bool{false, true} {
		store, a, r := memstore.New(t), folder(t), &family{lost: lost}
		c := connect(t, acp.Options{Store: store, Backend: using(r)})
		c.declaring(`{"subagents":{}}`)
		id := c.open(a)
		for _, text := range []string{"announce", subagentSays,
			`below {"sessionUpdate":"tool_call","toolCallId":"t","title":"T","status":"pending"}`} {
			c.call("session/prompt", promptParams(id, text))
		}
		told := len(aboutSubagent(c.messages()))
		require.Equal(t, 3, told)
		c.call("session/load", rootsParams(id, a))
		again := aboutSubagent(c.messages())[told:]
		if !lost {
			require.Len(t, again, 3)
			require.NotContains(t, strings.Join(again, ""), "failed")
			continue
		}
		require.Len(t, again, 5)
		require.Contains(t, again[3], `"failed"`)
		require.Contains(t, again[4], `"state":null`)
		c.call("session/delete", idParams(id))
		for u, err := range store.History(t.Context(), sessionstore.ID(id)) {
			require.Error(t, err, u.String())
		}
	}
}

// A subagent's questions are answered without asking only for what lies in its own folders.
//
// Clause A36.
func TestAllowReadsOfSubagents(t *testing.T) {
	a := folder(t)
	inner := filepath.Join(a, "inner")
	require.NoError(t, os.Mkdir(inner, 0o700))
	for _, dir := range []string{a, inner} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "f"), nil, 0o600))
	}
	c := connect(t, acp.Options{Permissions: allowingRules("read"), Backend: using(&family{})})
	c.declaring(`{"subagents":{}}`)
	c.permit("no")
	id := c.open(a)
	ask := func(dir string) {
		call := encode(map[string]any{"toolCallId": "t", "kind": "read", "title": "Read it",
			"locations": []any{map[string]any{"path": filepath.Join(dir, "f")}}})
		c.call("session/prompt", promptParams(id, "ask "+inner+
			` session/request_permission {"toolCall":`+call+`,"options":`+once+`}`))
	}
	ask(inner)
	require.Empty(t, c.questions())
	allowed := aboutSubagent(c.messages())
	require.Len(t, allowed, 1)
	require.Contains(t, allowed[0], `"sessionId":"`+id+`.sub_a"`)
	require.Contains(t, allowed[0], "(allowed by the rule `read`)")
	ask(a)
	require.Len(t, c.questions(), 1)
	require.Contains(t, string(c.questions()[0].Params), `"sessionId":"`+id+`.sub_a"`)
}
