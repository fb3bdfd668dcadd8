package acp_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/internal/test/memstore"
	"github.com/acp-agent/acp-agent/internal/test/pgtest"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/postgres"
	"github.com/acp-agent/acp-agent/sessionstore/sqlite"
)

// In any interleaving of what three clients do with a session, every viewer is shown the stored
// conversation, each prompt is answered once, and each question too.
//
// Clauses N7, N8.
func TestRandomWindows(t *testing.T) {
	randomWindows(t, 3, func(t *rapid.T) sessionstore.Store { return memstore.New(t) })
}

// So it is with four clients on the databases that people use.
//
// Clauses N7, N8, S1.
func TestRandomWindowsOnDatabases(t *testing.T) {
	var database pgtest.Server
	t.Cleanup(database.Stop)
	t.Run("SQLite", func(t *testing.T) {
		s := sqlite.New(sqlite.Options{Dir: t.TempDir()})
		t.Cleanup(func() { _ = s.Close() })
		randomWindows(t, 4, func(*rapid.T) sessionstore.Store { return s })
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		s, err := postgres.New(postgres.Options{Address: database.Address(t)})
		require.NoError(t, err)
		t.Cleanup(func() { _ = s.Close() })
		randomWindows(t, 4, func(*rapid.T) sessionstore.Store { return s })
	})
}

func randomWindows(t *testing.T, seats int, store func(*rapid.T) sessionstore.Store) {
	dir := folder(t)
	rapid.Check(t, func(t *rapid.T) {
		o := allowing(t, dir, acp.Options{Backend: using(&scripted{}), Store: store(t)})
		o.Tuning().BePatient(patience) // so that nothing that waits goes on because of the time
		s := newServer(t, acp.ServerOptions{}, o)
		h := &house{t: t, dir: dir, seats: make([]*tenant, seats), connect: func() *client {
			c := connectTo(t, s, acp.Peer{Principal: "ann", Remote: true})
			c.initialize()
			return c
		}}
		defer func() { require.NoError(t, s.Shutdown(t.Context())) }()
		h.begin()
		t.Repeat(map[string]func(*rapid.T){
			"attach": h.attach, "resume": h.resume, "say": h.say, "many": h.many, "ask": h.ask,
			"answer": h.answer, "dismiss": h.dismiss, "cancel": h.cancel, "close": h.close,
			"drop": h.drop, "slow": h.slow,
		})
		h.check()
	})
}

// house is a session and the clients that may have it open.
type house struct {
	t       *rapid.T
	dir, id string
	connect func() *client
	seats   []*tenant
	prompts int
	all     []*tenant
}

// tenant is a client, and what it knows.
type tenant struct {
	*client
	attached bool
	from     int // the index of the first message since it attached
	resumed  bool
	own      []string // what it has prompted, which it is not shown while its turns begin
	sent     []string // the ids of its prompts
	goOn     func()   // if it is stalled
}

func (h *house) begin() {
	h.seats[0] = h.newTenant()
	h.id = h.seats[0].open(h.dir)
	h.seats[0].attached = true
}

func (h *house) newTenant() *tenant {
	n := &tenant{client: h.connect()}
	h.all = append(h.all, n)
	return n
}

// some returns the client of a random seat, if it is attached.
func (h *house) some(t *rapid.T) *tenant {
	n := h.seats[rapid.IntRange(0, len(h.seats)-1).Draw(t, "seat")]
	if n == nil || !n.attached {
		t.Skip("nobody")
	}
	return n
}

// reading returns a client that is attached and reads.
func (h *house) reading(t *rapid.T) *tenant {
	n := h.some(t)
	if n.goOn != nil {
		t.Skip("stalled")
	}
	return n
}

// enter makes the client of a seat a viewer with the given method.
func (h *house) enter(t *rapid.T, method string) {
	i := rapid.IntRange(0, len(h.seats)-1).Draw(t, "seat")
	if h.seats[i] == nil {
		h.seats[i] = h.newTenant()
	}
	n := h.seats[i]
	if n.attached || n.goOn != nil {
		t.Skip("attached")
	}
	n.from, n.resumed = len(n.messages()), method == "session/resume"
	n.call(method, rootsParams(h.id, h.dir))
	n.attached = true
}

func (h *house) attach(t *rapid.T) { h.enter(t, "session/load") }

func (h *house) resume(t *rapid.T) { h.enter(t, "session/resume") }

func (h *house) prompt(n *tenant, text string) {
	id := n.post("session/prompt", promptParams(h.id, text))
	n.own = append(n.own, text)
	n.sent = append(n.sent, id)
}

func (h *house) next() int {
	h.prompts++
	return h.prompts
}

func (h *house) say(t *rapid.T) { h.prompt(h.some(t), fmt.Sprintf("say <%d>", h.next())) }

func (h *house) many(t *rapid.T) {
	h.next()
	h.prompt(h.some(t), fmt.Sprintf("count %d", 200+h.prompts))
}

func (h *house) ask(t *rapid.T) {
	ask := strings.Replace(askPermission, `"t1"`, fmt.Sprintf(`"t%d"`, h.next()), 1)
	h.prompt(h.some(t), ask)
}

// asked returns the questions that the client was asked and that were not cancelled.
func (n *tenant) asked() (open []message) {
	messages := n.messages()
	for _, m := range messages {
		if isQuestion(m) && !slices.ContainsFunc(messages, cancels(m)) {
			open = append(open, m)
		}
	}
	return open
}

func (h *house) replyWith(t *rapid.T, result string) {
	n := h.reading(t)
	open := n.asked()
	if len(open) == 0 {
		t.Skip("no question")
	}
	n.reply(rapid.SampledFrom(open).Draw(t, "question"), result) // perhaps for the second time
}

func (h *house) answer(t *rapid.T) { h.replyWith(t, yes) }

func (h *house) dismiss(t *rapid.T) { h.replyWith(t, cancelled) }

func (h *house) cancel(t *rapid.T) {
	n := h.some(t)
	n.send(notification("session/cancel", idParams(h.id)))
	if n.goOn != nil {
		return
	}
	for _, q := range n.asked() {
		n.reply(q, cancelled)
	}
}

// others returns how many clients are attached besides n.
func (h *house) others(n *tenant) (count int) {
	for _, other := range h.seats {
		if other != nil && other != n && other.attached {
			count++
		}
	}
	return count
}

func (h *house) close(t *rapid.T) {
	n := h.reading(t)
	if h.others(n) == 0 {
		t.Skip("the last one")
	}
	n.call("session/close", idParams(h.id))
	n.attached = false
}

func (h *house) drop(t *rapid.T) {
	n := h.reading(t)
	n.try("session/list", "{}") // then its prompts have their places
	n.leave()
	for i := range h.seats {
		if h.seats[i] == n {
			h.seats[i] = nil
		}
	}
}

func (h *house) slow(t *rapid.T) {
	n := h.some(t)
	if n.goOn == nil {
		n.goOn = n.stall()
		return
	}
	n.goOn()
	n.goOn = nil
}

// awaitAnswers waits until the prompts of the client were answered.
func (n *tenant) awaitAnswers() {
	for _, id := range n.sent {
		n.response(id)
	}
}

// check ends what is going on and compares what the clients were shown.
func (h *house) check() {
	for _, n := range h.seats {
		if n != nil && n.goOn != nil {
			n.goOn()
			n.goOn = nil
		}
	}
	last := h.newTenant()
	last.call("session/load", rootsParams(h.id, h.dir))
	last.permit("yes")
	for _, q := range last.asked() {
		last.reply(q, yes)
	}
	for _, n := range h.seats {
		if n != nil {
			n.awaitAnswers()
		}
	}
	for {
		m := last.try("session/prompt", promptParams(h.id, "say the end"))
		if m.Error == nil && m.stopReason(h.t) == "end_turn" {
			break
		}
	}
	fresh := h.newTenant()
	fresh.call("session/load", rootsParams(h.id, h.dir))
	stored := conversation(fresh.messages(), h.id)
	require.Contains(h.t, flat(stored), "the end")
	for _, n := range h.seats {
		if n == nil || !n.attached {
			continue
		}
		n.await(n.from, said("the end"))
		isOwn := func(said string) bool {
			own, ok := strings.CutPrefix(said, "user: ")
			return ok && slices.Contains(n.own, own)
		}
		want := slices.DeleteFunc(slices.Clone(stored), isOwn)
		got := slices.DeleteFunc(conversation(n.messages()[n.from:], h.id), isOwn)
		if n.resumed {
			require.True(h.t, strings.HasSuffix(flat(want), flat(got)),
				"a resumed client\nwas shown %s\nstored is %s", flat(got), flat(want))
			continue
		}
		require.Equal(h.t, flat(want), flat(got))
	}
	h.checkAnswers(stored)
}

// checkAnswers checks that each prompt was answered once, and each question at most once.
func (h *house) checkAnswers(stored []string) {
	for _, n := range h.all {
		for _, id := range n.sent {
			responses := 0
			for _, m := range n.messages() {
				if isResponse(id)(m) {
					responses++
				}
			}
			require.LessOrEqual(h.t, responses, 1)
		}
	}
	asked, answered := 0, strings.Count(flat(stored), `{"outcome":{`)
	for _, said := range stored {
		if strings.HasPrefix(said, "user: call ") {
			asked++
		}
	}
	require.LessOrEqual(h.t, answered, asked)
}

// conversation returns what the users and the agent said, as a client was shown it.
func conversation(messages []message, id string) (said []string) {
	for _, m := range messages {
		var p struct {
			SessionID string
			Update    struct {
				SessionUpdate string
				Content       struct{ Text string }
			}
		}
		if m.Method != "session/update" || json.Unmarshal(m.Params, &p) != nil || p.SessionID != id {
			continue
		}
		text := p.Update.Content.Text
		if strings.Contains(text, "too late") {
			continue // which only this client is told
		}
		switch p.Update.SessionUpdate {
		case "user_message_chunk":
			said = append(said, "user: "+text)
		case "agent_message_chunk":
			said = append(said, "agent: "+text)
		}
	}
	return said
}

// flat returns a conversation as one text, in which chunks of the agent are joined.
func flat(said []string) string {
	var b strings.Builder
	for _, s := range said {
		if text, ok := strings.CutPrefix(s, "agent: "); ok {
			b.WriteString(text)
		} else {
			b.WriteString("\n" + s + "\n")
		}
	}
	return b.String()
}
