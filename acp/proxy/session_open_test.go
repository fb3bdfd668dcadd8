package proxy_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/acp/proxy"
	"github.com/acp-agent/acp-agent/acp/proxy/internal/child"
	"github.com/acp-agent/acp-agent/acp/proxy/profiles"
	"github.com/acp-agent/acp-agent/internal/test/memstore"
	"github.com/acp-agent/acp-agent/internal/test/volume"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// Agents with every combination of load, resume, fork, list, close, delete and
// additionalDirectories.
//
// Clause P7.
func TestAllCapabilities(t *testing.T) {
	for set := range 1 << 7 {
		if volume.Of(1, 0) == 1 && !chosen(set) {
			continue
		}
		a := abilities{
			Load: set&1 != 0, Resume: set&2 != 0, Fork: set&4 != 0, Roots: set&8 != 0,
			Close: set&16 != 0, Delete: set&32 != 0, List: set&64 != 0,
		}
		t.Run(fmt.Sprintf("%+v", a), func(t *testing.T) {
			t.Parallel()
			testLifecycle(t, a)
		})
	}
}

// chosen reports whether a set of 7 bits is among an eighth of all combinations, which has every
// combination of any three of them: a Hamming code.
func chosen(set int) bool {
	odd := func(mask int) bool { return bits.OnesCount(uint(set&mask))%2 != 0 }
	return !odd(0b1010101) && !odd(0b1100110) && !odd(0b1111000)
}

// testLifecycle goes through a session's whole life with an agent.
func testLifecycle(t *testing.T, a abilities) {
	h := newSystem(t, a, proxy.Options{})
	first := roots(t, 2)
	extra := t.TempDir()

	v := h.connect()
	s := v.open(first)
	require.Equal(t, "agent N:one", v.prompt(s.ID, "one"))
	v.disconnect()

	// In another process and with other roots, the conversation is shown once, and the agent knows
	// it.
	v = h.connect()
	reopened, err := v.LoadSession(t.Context(), s.ID, client.Setup{Roots: with(first, extra)})
	require.NoError(t, err)
	require.Contains(t, string(reopened.Result), `"currentModeId":"ask"`)
	require.Equal(t, []string{"user one", "agent N:one"}, v.shown())
	one := "one"
	if !a.Load && !a.Resume {
		one = "~one"
	}
	require.Equal(t, "agent N:"+one+"+two", v.prompt(s.ID, "two"))

	// A resume with the first roots in the same process shows nothing.
	_, err = v.ResumeSession(t.Context(), s.ID, client.Setup{Roots: first})
	require.NoError(t, err)
	require.Empty(t, v.shown())
	heard := one + "+two"
	if !a.Load && !a.Resume {
		heard = "~one+~two"
	}
	require.Equal(t, "agent N:"+heard+"+three", v.prompt(s.ID, "three"))
	require.Equal(t, []string{"one", "N:one", "two", "N:" + one + "+two", "three",
		"N:" + heard + "+three"}, h.history(s.ID))

	f, err := v.ForkSession(t.Context(), s.ID, client.Setup{Roots: first})
	require.NoError(t, err)
	require.Empty(t, v.shown())
	forked := heard + "+three"
	if !a.Fork {
		forked = "~one+~two+~three"
	}
	require.Equal(t, "agent N:"+forked+"+four", v.prompt(f.ID, "four"))
	require.Equal(t, "agent N:"+heard+"+three+five", v.prompt(s.ID, "five"),
		"the source is independent")

	require.NoError(t, v.CloseSession(t.Context(), f.ID))
	require.NoError(t, v.DeleteSession(t.Context(), s.ID))
	v.disconnect()
	requireOnlyWhatItHas(t, a, h.received(), first, extra)
}

// requireOnlyWhatItHas checks that the agent received only what it had advertised.
func requireOnlyWhatItHas(
	t *testing.T, a abilities, got []received, first workspace.Roots, extra string,
) {
	all := methods(got)
	for method, has := range map[string]bool{
		"session/load": a.Load, "session/resume": a.Resume, "session/fork": a.Fork,
		"session/close": a.Close,
	} {
		if !has {
			require.NotContains(t, all, method)
		}
	}
	require.Equal(t, a.Close, slices.Contains(all, "session/close"))
	require.Equal(t, a.Fork, slices.Contains(all, "session/fork"))
	lists := 0
	for _, r := range got {
		var p struct {
			AdditionalDirectories *[]string
			Prompt                []struct{ Text string }
		}
		if r.method == "start" {
			continue
		}
		require.NoError(t, json.Unmarshal([]byte(r.params), &p))
		if p.AdditionalDirectories != nil {
			lists++
			require.True(t, a.Roots, "P1: %s", r.method)
		}
		switch r.method {
		case "session/load", "session/resume", "session/fork":
			require.Equal(t, a.Roots, p.AdditionalDirectories != nil, "P3: the full list")
		case "session/prompt":
			for _, block := range p.Prompt {
				if strings.Contains(block.Text, "several folders") {
					require.False(t, a.Roots, "they were sent by the protocol")
				}
			}
		}
	}
	if a.Roots {
		require.Positive(t, lists)
		return
	}
	// descriptions of the roots: at first, on load, on resume, on the fork if it is a new session
	var told []string
	for _, r := range got {
		if r.method == "session/prompt" && strings.Contains(r.params, "several folders") {
			told = append(told, r.params)
		}
	}
	require.GreaterOrEqual(t, len(told), 3)
	require.Contains(t, told[0], first.At(2).String())
	require.Contains(t, told[1], extra)
	require.NotContains(t, told[1], first.At(2).String())
	require.Contains(t, told[2], first.At(2).String())
}

// An agent that cannot open its session at the moment opens it the next time, and is then told what
// was said in between.
func TestSessionNotOpenedOnce(t *testing.T) {
	for message, keeps := range map[string]bool{
		"session c1 is already open elsewhere": true,
		"Session not found: c1":                false,
	} {
		t.Run(message, func(t *testing.T) {
			t.Parallel()
			testNotOpenedOnce(t, message, keeps)
		})
	}
}

func testNotOpenedOnce(t *testing.T, message string, keeps bool) {
	a := abilities{Load: true, Dir: t.TempDir(), Refuse: "session/load", Code: -32603,
		Why: filepath.Join(t.TempDir(), "why")}
	h, v := connected(t, a, proxy.Options{})
	first := roots(t, 0)
	s := v.open(first)
	v.prompt(s.ID, "one")
	reload := func() {
		t.Helper()
		v.disconnect()
		v = h.connect()
		v.load(s.ID, first)
	}

	require.NoError(t, os.WriteFile(a.Why, []byte(message), 0o600))
	reload()
	v.until("does not open its own session")
	v.mu.Lock()
	said := strings.Join(v.seen, "\n")
	v.mu.Unlock()
	require.Contains(t, said, message)
	require.Equal(t, []string{"user one", "agent N:one"}, v.shownBeforeNotice())

	require.NoError(t, os.Remove(a.Why))
	reload()
	require.Equal(t, []string{"user one", "agent N:one"}, v.shown())
	before := "~one"
	if keeps {
		before = "one"
	}
	require.Equal(t, "agent N:"+before+"+two", v.prompt(s.ID, "two"), "nothing was said meanwhile")

	require.NoError(t, os.WriteFile(a.Why, []byte(message), 0o600))
	reload()
	v.shownBeforeNotice()
	require.Equal(t, "agent N:~one+~two+three", v.prompt(s.ID, "three"))
	reload()
	v.shownBeforeNotice()
	require.Equal(t, "agent N:~one+~two+~three+four", v.prompt(s.ID, "four"))
	require.NoError(t, os.Remove(a.Why))
	v.begin(s.ID, "hang")
	v.until("agent hanging")
	v.load(s.ID, first)
	require.Subset(t, v.shown(), []string{"user three", "agent N:~one+~two+three", "user four"})
	told := "agent N:~one+~two+~three+four+hang+five"
	if keeps {
		told = "agent N:one+two+~one+~two+~three+~four+~hang+five"
	}
	require.Equal(t, told, v.prompt(s.ID, "five"))
	require.Equal(t, told+"+six", v.prompt(s.ID, "six"), "it is told once")
}

// Deleting a session deletes both sessions of the agent.
func TestDeletionOfReplacedSession(t *testing.T) {
	dir := t.TempDir()
	h, v := connected(t, abilities{Load: true, Delete: true, Dir: dir, Refuse: "session/load",
		Code: -32603}, proxy.Options{})
	first := roots(t, 0)
	s := v.open(first)
	v.prompt(s.ID, "one")
	v.disconnect()
	v = h.connect()
	v.load(s.ID, first)
	v.shownBeforeNotice()
	v.prompt(s.ID, "two")
	kept, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, kept, 2)
	require.NoError(t, v.DeleteSession(t.Context(), s.ID))
	kept, err = os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, kept)
}

// A child session that began in the middle of ours must not replace the stored history.
//
// Clause P7.
func TestPartialReplay(t *testing.T) {
	h, v := connected(t, abilities{}, proxy.Options{})
	first := roots(t, 0)
	s := v.open(first)
	v.prompt(s.ID, "one")
	v.disconnect()
	v = h.connect()
	v.load(s.ID, first)
	// before the child has the conversation
	v.disconnect()
	// it has been updated and can load now
	h.command, _ = simulatedCommand(t, abilities{Load: true, Dir: dirOf(t, h)})
	v = h.connect()
	v.load(s.ID, first)
	require.Equal(t, []string{"user one", "agent N:one"}, v.shown())
	require.Equal(t, "agent N:~one+two", v.prompt(s.ID, "two"))
	v.load(s.ID, first)
	require.Equal(t, []string{"user one", "agent N:one", "user two", "agent N:~one+two"}, v.shown())
	require.Equal(t, "agent N:~one+two+three", v.prompt(s.ID, "three"), "only once")
}

// Clause P7.
func TestLateReplay(t *testing.T) {
	h, v := connected(t, abilities{Load: true, LateReplay: true},
		proxy.Options{Profile: profiles.Profile{Replay: profiles.Replay{Late: true}}})
	first := roots(t, 0)
	s := v.open(first)
	v.prompt(s.ID, "one")
	v.load(s.ID, first)
	require.Equal(t, []string{"user one", "agent N:one"}, v.shown())
	require.Equal(t, "agent N:one+two", v.prompt(s.ID, "two"),
		"it is not taken for part of the turn")
	require.Equal(t, []string{"one", "N:one", "two", "N:one+two"}, h.history(s.ID))
	v.crash(s.ID)
	require.Equal(t, "agent N:one+two+crash+three", v.prompt(s.ID, "three"), "nor after a restart")
	require.Equal(t, "agent N:one+two+crash+three+four", v.prompt(s.ID, "four"))
	pings := 0
	for _, method := range methods(h.received()) {
		if strings.HasPrefix(method, "_") {
			pings++
		}
	}
	require.Equal(t, 4, pings, "until the agent has replayed nothing more")
}

// withAgent returns a system with a store of its own and an agent whose sessions are in dir.
func withAgent(t *testing.T, dir string, late bool, p profiles.Profile) *system {
	return newSystem(t, abilities{Load: true, LateReplay: late, Dir: dir}, proxy.Options{Profile: p})
}

// The agent was used without this program, which has no record of the session.
//
// Clause P7.
func TestReplayWithoutRecord(t *testing.T) {
	for name, p := range map[string]profiles.Profile{
		"late": {Replay: profiles.Replay{Late: true}}, "in time": {}} {
		t.Run(name, func(t *testing.T) {
			files, first := t.TempDir(), roots(t, 0)
			alone := withAgent(t, files, p.Replay.Late, profiles.Profile{}).connect()
			made := alone.open(first)
			alone.prompt(made.ID, "one")
			alone.disconnect()

			h := withAgent(t, files, p.Replay.Late, p)
			for range 2 { // the second time it is on record
				v := h.connect()
				v.load("c1", first)
				require.Equal(t, []string{"user one", "agent N:one"}, v.shown())
				v.disconnect()
			}
			v := h.connect()
			v.load("c1", first)
			require.Equal(t, "agent N:one+two", v.prompt("c1", "two"))
			require.Equal(t, []string{"one", "N:one", "two", "N:one+two"}, h.history("c1"))
		})
	}
}

// What only the agent knows is recorded when the session is resumed, and shown by a later load.
//
// Clause P7.
func TestResumeWithoutRecord(t *testing.T) {
	files, first := t.TempDir(), roots(t, 0)
	alone := withAgent(t, files, false, profiles.Profile{}).connect()
	made := alone.open(first)
	alone.prompt(made.ID, "one")
	alone.disconnect()

	h, v := connected(t, abilities{Load: true, Resume: true, Dir: files}, proxy.Options{})
	_, err := v.ResumeSession(t.Context(), "c1", client.Setup{Roots: first})
	require.NoError(t, err)
	require.Empty(t, v.shown())
	require.Equal(t, []string{"one", "N:one"}, h.history("c1"))
	require.Equal(t, "agent N:one+two", v.prompt("c1", "two"))
	v.disconnect()
	v = h.connect()
	v.load("c1", first)
	require.Equal(t, []string{"user one", "agent N:one", "user two", "agent N:one+two"}, v.shown())
}

// Clause A12.
func TestFailedLoadDuringTurn(t *testing.T) {
	// The first session is loaded while its turn runs, when the agent requires a login.
	_, v := connected(t, abilities{Load: true, Refuse: "session/load", Code: -32000}, proxy.Options{})
	first := roots(t, 0)
	s := v.open(first)
	v.prompt(s.ID, "one")
	_, err := v.LoadSession(t.Context(), s.ID, client.Setup{Roots: first})
	var refused *jsonrpc.Error
	require.ErrorAs(t, err, &refused)
	require.Equal(t, -32000, refused.Code)
	require.Equal(t, "agent N:one+two", v.prompt(s.ID, "two"), "the session is unchanged")

	// A load with missing roots fails before the turn is stopped.
	ended := v.begin(s.ID, "hang")
	v.until("agent hanging")
	_, err = v.LoadSession(t.Context(), s.ID,
		client.Setup{Roots: with(first, first.Cwd().String()+"/missing")})
	require.Error(t, err)
	require.Empty(t, ended)
	require.NoError(t, v.Cancel(t.Context(), s.ID))
	require.Equal(t, "cancelled", <-ended)
}

// Clause A12.
func TestLoadDuringTurn(t *testing.T) {
	h, v := connected(t, abilities{Load: true}, proxy.Options{})
	first := roots(t, 0)
	s := v.open(first)
	v.prompt(s.ID, "one")
	ended := v.begin(s.ID, "hang")
	v.until("agent hanging")
	v.shown()
	v.load(s.ID, first)
	require.Equal(t, "cancelled", <-ended)
	require.Equal(t, []string{"user one", "agent N:one", "user hang", "agent hanging"}, v.shown())
	got := methods(h.received())
	require.Less(t, slices.Index(got, "session/cancel"), slices.Index(got, "session/load"),
		"the turn ends before the agent is asked to load")
	require.Equal(t, "agent N:one+hang+two", v.prompt(s.ID, "two"))
}

// Clause A27.
func TestStates(t *testing.T) {
	h, v := connected(t, abilities{Load: true}, proxy.Options{})
	first := roots(t, 0)
	s := v.open(first)
	for i := range 5 {
		v.prompt(s.ID, fmt.Sprint("word", i))
	}
	v.disconnect()
	v = h.connect()
	v.load(s.ID, first)
	v.until("usage_update")
	v.SetMode(t, s.ID, "m")
	v.mu.Lock()
	defer v.mu.Unlock()
	counts := make(map[string]int)
	for _, kind := range v.seen {
		counts[kind]++
	}
	require.Equal(t, 1, counts["usage_update"])
	require.Equal(t, 1, counts["available_commands_update"])
}

func TestLateSession(t *testing.T) {
	const answer = `answer session/new {"sessionId":"child-1"}` + "\n"
	b := initialized(t, strings.Replace(capable, `"close":{}`, `"close":{},"delete":{}`, 1)+
		"await session/new\n"+`send {"jsonrpc":"2.0","method":"_x/asked"}`+
		"\nawait $/cancel_request\n"+answer+
		"await session/delete\n"+`send {"jsonrpc":"2.0","method":"_x/deleted"}`+"\n"+
		openedAgain)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		b.client.next()
		cancel()
	}()
	_, _, err := b.backend.Open(ctx, backend.Activation{Cause: backend.New,
		Params: backend.Raw(`{"cwd":"/a","mcpServers":[]}`)}, host{b.client})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, "client notify _x/deleted ", b.client.next())
	b.open()
	require.Equal(t, []string{
		`{"jsonrpc":"2.0","id":3,"method":"session/close","params":{"sessionId":"child-1"}}`,
		`{"jsonrpc":"2.0","id":4,"method":"session/delete","params":{"sessionId":"child-1"}}`,
	}, b.received("session/close", "session/delete"))
}

func TestCloseWithoutAnswer(t *testing.T) {
	b := initialized(t, capable+opened+"await session/close\n",
		proxy.Options{}.WithChild(child.Limits{EndTimeout: 100 * time.Millisecond}))
	s, _ := b.open()
	require.NoError(t, s.Close(t.Context()))
	require.Len(t, b.received("session/close"), 1)
}

// reopened opens a session that may be active again.
func (b *proxyTest) reopened(
	cause backend.Cause, previous backend.Session, params string,
) (backend.Session, backend.Opened, error) {
	return b.backend.Open(b.t.Context(), backend.Activation{
		Cause: cause, State: []byte(b.client.state), Previous: previous,
		Params:  backend.Raw(params),
		History: asked,
		Stop:    func(context.Context) error { return nil },
	}, host{b.client})
}

// asked is a history with a prompt.
func asked(yield func(backend.Update, error) bool) {
	yield(backend.NewUpdate(sdk.UpdateUserMessageText("asked")), nil)
}

const (
	able = "await initialize\n" +
		`answer initialize {"protocolVersion":1,"agentCapabilities":{"loadSession":true,` +
		`"sessionCapabilities":{"close":{}}}}` + "\n"
	replayed = `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"child-1",` +
		`"update":{"sessionUpdate":"_replayed"}}}` + "\n"
	loadAnswer = `answer session/load {}` + "\n"
	loaded     = "await session/load\n" + "send " + replayed + loadAnswer
	closes     = "await session/close\n" + `answer session/close {}` + "\n"
)

// A load that failed has changed the folders of the agent's session. The agent neither opens it
// again nor closes it, so the next prompt goes to a new one.
func TestSessionThatCannotBeClosed(t *testing.T) {
	const no = ` {"code":-32603,"message":"no"}` + "\n"
	b := initialized(t, able+opened+"await session/load\n"+loadAnswer+
		"await session/load\nrefuse session/load"+no+openedAgain+
		"await session/close\nrefuse session/close"+no+"await session/prompt\n"+answered)
	s, _, err := b.reopened(backend.New, nil, `{"cwd":"/a","mcpServers":[]}`)
	require.NoError(t, err)
	_, _, err = b.backend.Open(t.Context(), backend.Activation{
		Cause: backend.Load, State: []byte(b.client.state), Previous: s, Unlisted: true,
		Params: backend.Raw(`{"cwd":"/b","mcpServers":[]}`),
	}, host{b.client})
	require.ErrorIs(t, err, backend.ErrUnknownSession, "it has replayed nothing")
	_, err = b.prompt(s)
	require.NoError(t, err)
	require.Contains(t, b.received("session/close")[0], `"sessionId":"child-1"`)
	require.Contains(t, b.received("session/prompt")[0], `"sessionId":"child-2"`)
}

// Clause P7.
func TestReplay(t *testing.T) {
	const (
		ping  = `refuse _acp-agent/ping {"code":-32601,"message":"no"}` + "\n"
		late  = "await _acp-agent/ping\nsend " + replayed + ping + "await _acp-agent/ping\n" + ping
		end   = `send {"jsonrpc":"2.0","method":"_x/end","params":{"sessionId":"child-1"}}` + "\n"
		fails = `refuse session/load {"code":-32603,"message":"no more"}` + "\n"
	)
	for name, c := range map[string]struct {
		script  string
		profile profiles.Profile
		note    string
		err     string
	}{
		"shown as it comes": {loaded + "send " + replayed + end, profiles.Profile{},
			`host replay {"update":{"sessionUpdate":"_replayed"}}`, ""},
		"the same if it is late": {loaded + late + end,
			profiles.Profile{Replay: profiles.Replay{Late: true}},
			`host replay {"update":{"sessionUpdate":"_replayed"}}`, ""},
		"empty": {"await session/load\n" + loadAnswer, profiles.Profile{}, "", ""},
		"an error in the middle": {"await session/load\nsend " + replayed + fails, profiles.Profile{},
			"", "no more"},
	} {
		t.Run(name, func(t *testing.T) {
			b := initialized(t, able+opened+c.script, proxy.Options{Profile: c.profile})
			first, _ := b.open()
			_, _, err := b.reopened(backend.Load, first, `{"cwd":"/a","mcpServers":[]}`)
			if c.err == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.err)
			}
			if c.note != "" {
				require.Equal(t, c.note, b.client.next())
			}
			require.Len(t, b.received("session/new"), 1, "no other way is tried")
		})
	}
}

// What the child was told for an activation that was not committed is told it again, before the
// session is used, and not at all if it is closed.
//
// Clause A12.
func TestUncommittedActivation(t *testing.T) {
	const other = `[{"name":"x","command":"x","args":[],"env":[]}]`
	said := "send " + fmt.Sprintf(update, `{"n":"said"}`)
	prompted := "await session/prompt\n" + said + answered
	for name, c := range map[string]struct {
		script string
		times  int
		sent   []string // after the first session/load
	}{
		"loaded": {loaded + loaded + prompted, 1, []string{`"mcpServers":[]`, "session/close"}},
		"loaded, twice": {loaded + loaded + closes + loaded + prompted, 2,
			[]string{other, "session/close", `"mcpServers":[]`, "session/close"}},
		"never used": {loaded, 1, []string{"session/close"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := initialized(t, able+opened+c.script+closes)
			first, _ := b.open()
			for range c.times {
				second, _, err := b.reopened(backend.Load, first, `{"cwd":"/a","mcpServers":`+other+`}`)
				require.NoError(t, err)
				require.Equal(t, `host replay {"update":{"sessionUpdate":"_replayed"}}`, b.client.next())
				require.NoError(t, second.Close(t.Context()), "the commit failed")
			}
			if name != "never used" {
				_, err := b.prompt(first)
				require.NoError(t, err)
				require.Equal(t, `turn update {"update":{"n":"said"}}`, b.client.next())
			}
			require.NoError(t, first.Close(t.Context()))
			sent := b.received("session/load", "session/close")
			require.Contains(t, sent[0], other)
			require.Len(t, sent, 1+len(c.sent), "it is closed after its last user has left")
			for i, part := range c.sent {
				require.Contains(t, sent[1+i], part)
			}
		})
	}
}

// full is a store that rejects activations while it is full.
type full struct {
	sessionstore.Store
	is atomic.Bool
}

func (f *full) Activate(
	ctx context.Context, id sessionstore.ID, a sessionstore.Activation,
) (sessionstore.Lease, error) {
	if f.is.Load() {
		return sessionstore.Lease{}, &sessionstore.UnavailableError{Medium: "/state",
			Hint: "free some space", Err: errors.New("disk full")}
	}
	return f.Store.Activate(ctx, id, a)
}

// Clause A13.
func TestRootsAfterFailedLoad(t *testing.T) {
	for name, a := range map[string]abilities{
		"it resumes": {Resume: true, Roots: true}, "it loads": {Load: true, Roots: true},
		"both": {Load: true, Resume: true, Roots: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newSystem(t, a, proxy.Options{})
			store := &full{Store: memstore.New(t)}
			h.store = store
			v := h.connect()
			first := roots(t, 1)
			s := v.open(first)
			v.prompt(s.ID, "one")
			store.is.Store(true)
			_, err := v.LoadSession(t.Context(), s.ID, client.Setup{Roots: roots(t, 2)})
			require.Error(t, err)
			_, err = v.LoadSession(t.Context(), s.ID, client.Setup{Roots: with(first, t.TempDir())})
			require.ErrorContains(t, err, diskFull())
			require.Equal(t, "agent N:one+two", v.prompt(s.ID, "two"), "the session continues")
			store.is.Store(false)
			v.load(s.ID, with(first))
			v.disconnect()
			var lists []string
			for _, r := range h.received() {
				if r.method == "session/new" || r.method == "session/load" ||
					r.method == "session/resume" {
					_, list, _ := strings.Cut(r.params, `"additionalDirectories":`)
					list, _, _ = strings.Cut(list, "]")
					lists = append(lists, list)
				}
			}
			require.Len(t, lists, 4)
			require.Equal(t, lists[0], lists[2], "the current list")
			require.NotEqual(t, lists[0], lists[1])
			require.Equal(t, "[", lists[3])
		})
	}
}

// Clause A14.
func TestForkDuringTurn(t *testing.T) {
	h, v := connected(t, abilities{Load: true}, proxy.Options{})
	first := roots(t, 1)
	s := v.open(first)
	v.prompt(s.ID, "one")
	ended := v.begin(s.ID, "hang")
	require.Eventually(t, func() bool { return len(h.history(s.ID)) == 4 }, patience, 1e6,
		"the turn is running")
	fork, err := v.ForkSession(t.Context(), s.ID, client.Setup{Roots: first})
	require.NoError(t, err)
	require.Equal(t, "agent N:~one+two", v.prompt(fork.ID, "two"))
	require.NoError(t, v.Cancel(t.Context(), s.ID))
	require.Equal(t, "cancelled", <-ended)
}

func TestLoginHint(t *testing.T) {
	o := proxy.Options{}
	o.Profile.Start.Login = "simulated login"
	_, v := connected(t, abilities{Login: true}, o)
	_, err := v.NewSession(t.Context(), client.Setup{Roots: roots(t, 0)})
	var refused *jsonrpc.Error
	require.ErrorAs(t, err, &refused)
	require.Equal(t, -32000, refused.Code, "editors offer a login for this code")
	require.ErrorContains(t, err, "Authentication required")
	require.ErrorContains(t, err, "run in a terminal: simulated login")
	require.NoError(t, v.Authenticate(t.Context(), "key"))
	s := v.open(roots(t, 0))
	v.crash(s.ID)
	v.prompt(s.ID, "two")
	_, err = v.Call(t.Context(), "logout", json.RawMessage(`{}`))()
	require.NoError(t, err)
	_, err = v.NewSession(t.Context(), client.Setup{Roots: roots(t, 0)})
	require.ErrorContains(t, err, "Authentication required")
}

// A session whose folder was moved opens in its new place. An agent that does not open its own
// session there gets a new one, and is told the conversation.
//
// Clause P7.
func TestMovedSession(t *testing.T) {
	for _, bound := range []bool{false, true} {
		t.Run(fmt.Sprintf("bound %v", bound), func(t *testing.T) {
			h, v := connected(t, abilities{Load: true, Roots: true, Bound: bound}, proxy.Options{})
			before, after := roots(t, 1), roots(t, 1)
			s := v.open(before)
			require.Equal(t, "agent N:one", v.prompt(s.ID, "one"))
			v.disconnect()

			stored, err := h.store.Get(t.Context(), sessionstore.ID(s.ID))
			require.NoError(t, err)
			keys := sessionstore.Keys{Roots: after}
			for _, dir := range after.All() {
				keys.Real = append(keys.Real, dir)
			}
			_, err = h.store.Move(t.Context(),
				sessionstore.Lease{ID: stored.ID, Generation: stored.Generation}, keys)
			require.NoError(t, err)

			v = h.connect()
			told, shown := "one", v.shown
			if bound {
				told, shown = "~one", v.shownBeforeNotice
			}
			v.load(s.ID, after)
			require.Equal(t, []string{"user one", "agent N:one"}, shown())
			require.Equal(t, "agent N:"+told+"+two", v.prompt(s.ID, "two"))
			require.Equal(t, "agent N:"+told+"+two+three", v.prompt(s.ID, "three"),
				"it is told once")
			require.Equal(t, []string{"one", "N:one", "two", "N:" + told + "+two", "three",
				"N:" + told + "+two+three"}, h.history(s.ID))
		})
	}
}
