package acp_test

import (
	"context"
	"errors"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/jsonrpc"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// Load and resume: first what the random lives of sessions met, each on its own; then the clauses.

func TestA17_ALoadByAnAliasMayNameTheStoredSpellingAsAnotherRoot(t *testing.T) {
	c := connect(t, acp.Options{})
	c.initialize()
	where := places{folder(t)}
	where.make(t)
	a, alias := where.path("a"), where.path("alias")
	id := c.open(a)
	c.call("session/load", rootsParams(id, alias, a))
	require.Equal(t, a, c.find(id).Cwd)
	require.Equal(t, []string{}, c.find(id).AdditionalDirectories)
	require.Equal(t, []string{"[" + alias + ", " + a + "]"}, c.texts(id, "roots"))
}

func TestA28_DeleteFreesASessionThatAnotherProcessDeleted(t *testing.T) {
	store := sessionstore.NewMemory()
	old, newer := connect(t, acp.Options{Store: store}), connect(t, acp.Options{Store: store})
	old.initialize()
	newer.initialize()
	id := old.open(folder(t))
	prompt, line := old.request("session/prompt", promptParams(id, "wait"))
	old.send(line)
	old.await(0, said("waiting"))
	newer.call("session/delete", idParams(id))
	deletion, line := old.request("session/delete", idParams(id))
	old.send(line)
	require.Nil(t, old.response(deletion).Error)
	_, at := old.await(0, isResponse(deletion))
	require.Equal(t, []string{"cancelled"}, stopReasons(t, old.messages()[:at], prompt))
}

// stopReasons are those of a prompt's answers.
func stopReasons(t *testing.T, messages []message, prompt string) []string {
	var all []string
	for _, m := range messages {
		if isResponse(prompt)(m) {
			all = append(all, m.stopReason(t))
		}
	}
	return all
}

func TestS3_ATurnOfAFencedProcessIsNotWrittenAfterItLoadsAgain(t *testing.T) {
	store := sessionstore.NewMemory()
	late := sessionstore.RecorderOptions{Interval: time.Hour}
	old, newer := connect(t, acp.Options{Store: store}.With(acp.Tuning{Recorder: late})), connect(t, acp.Options{Store: store})
	old.initialize()
	newer.initialize()
	a := folder(t)
	id := old.open(a)
	prompt, line := old.request("session/prompt", promptParams(id, "wait"))
	old.send(line)
	old.await(0, said("waiting"))
	newer.call("session/load", rootsParams(id, a))
	newer.texts(id, "say yours")
	old.call("session/load", rootsParams(id, a))
	require.Equal(t, "cancelled", old.response(prompt).stopReason(t))
	_, answered := old.await(0, isResponse(prompt))
	require.Equal(t, []string{"yours"}, texts(old.messages()[answered:], id), "what the old turn said belongs before what the newer one was asked")
	require.Equal(t, []string{"mine again"}, old.texts(id, "say mine again"))
}

func TestA27_ALoadThatCannotBeShownLeavesNothingOpen(t *testing.T) {
	store := &unreadable{Memory: sessionstore.NewMemory()}
	r := &scripted{}
	c := connect(t, acp.Options{Store: store, Backend: func() backend.Backend { return r }})
	c.initialize()
	a := folder(t)
	id := c.open(a)
	c.texts(id, "say one")
	store.err = &sessionstore.UnavailableError{Path: "/state/sessions.db", Hint: "run repair", Err: errors.New("damaged")}
	require.Equal(t, "store_unavailable", c.try("session/load", rootsParams(id, a)).reason(t))
	require.Equal(t, "not_active", c.try("session/prompt", promptParams(id, "say two")).reason(t))
	require.Equal(t, 2, strings.Count(encode(r.noted()), `"close"`), "both activations are freed")
	store.err = nil
	c.call("session/load", rootsParams(id, a))
	require.Equal(t, []string{"three"}, c.texts(id, "say three"))
}

// unreadable is a store whose histories cannot be read when a test says so.
type unreadable struct {
	*sessionstore.Memory
	err error
}

func (u *unreadable) History(ctx context.Context, id sessionstore.ID) iter.Seq2[sessionstore.Update, error] {
	if u.err == nil {
		return u.Memory.History(ctx, id)
	}
	return func(yield func(sessionstore.Update, error) bool) { yield(nil, u.err) }
}

func TestA12_ALoadThatTookEffectWaitsForItsTurnThoughItWasCancelled(t *testing.T) {
	r := &scripted{release: make(chan struct{})}
	c := connect(t, acp.Options{Backend: func() backend.Backend { return r }}.With(acp.Tuning{CancelGrace: patience}))
	c.initialize()
	a, b := folder(t), folder(t)
	id := c.open(a)
	prompt, line := c.request("session/prompt", promptParams(id, "stubborn"))
	c.send(line)
	c.await(0, said("stubborn"))
	load, line := c.request("session/load", rootsParams(id, a, b))
	c.send(line)
	require.Eventually(t, func() bool { return len(c.find(id).AdditionalDirectories) == 1 }, patience, time.Millisecond)
	c.send(notification("$/cancel_request", `{"requestId":`+load+`}`))
	for range 100 {
		c.list(`{}`)
	}
	close(r.release)
	require.Nil(t, c.response(load).Error)
	_, ended := c.await(0, isResponse(prompt))
	_, loaded := c.await(0, isResponse(load))
	require.Less(t, ended, loaded, "the turn is answered before the switch")
	require.Equal(t, []string{"stubborntoo late"}, texts(c.messages()[ended:], id), "its last words are in the history")
}

func TestA10_LoadAndResumeActivateOnlyTheGivenRoots(t *testing.T) {
	for _, method := range []string{"session/load", "session/resume"} {
		t.Run(method, func(t *testing.T) {
			c := connect(t, acp.Options{})
			c.initialize()
			a, b, d := folder(t), folder(t), folder(t)
			id := c.open(a, b)
			c.call(method, rootsParams(id, a, d, b))
			require.Equal(t, []string{d, b}, c.find(id).AdditionalDirectories)
			require.Contains(t, c.texts(id, "roots")[0], d)
			c.call(method, rootsParams(id, a))
			require.Equal(t, []string{}, c.find(id).AdditionalDirectories, "A13")
			require.NotContains(t, c.texts(id, "roots")[0], b)
			c.call(method, rootsParams(id, a, []string{}...))
			require.Equal(t, []string{}, c.find(id).AdditionalDirectories)
		})
	}
}

func TestA11_CwdMustBeTheSessions(t *testing.T) {
	c := connect(t, acp.Options{})
	c.initialize()
	a, b := folder(t), folder(t)
	link := filepath.Join(folder(t), "link")
	require.NoError(t, os.Symlink(a, link))
	id := c.open(a, b)
	m := c.try("session/load", rootsParams(id, b))
	require.Equal(t, jsonrpc.CodeInvalidParams, m.Error.Code)
	require.Equal(t, "cwd_mismatch", m.reason(t))
	require.Contains(t, string(m.Error.Data), a)
	require.Equal(t, []string{b}, c.find(id).AdditionalDirectories, "nothing changed")
	c.call("session/load", rootsParams(id, link))
	require.Equal(t, a, c.find(id).Cwd, "A17: the spelling given at new is kept")
}

func TestA12_LoadOfALiveSession(t *testing.T) {
	r := &scripted{}
	c := connect(t, acp.Options{Backend: func() backend.Backend { return r }})
	c.initialize()
	a, b := folder(t), folder(t)
	id := c.open(a)
	prompt, line := c.request("session/prompt", promptParams(id, "wait"))
	c.send(line)
	c.await(0, said("waiting"))

	m := c.try("session/load", rootsParams(id, a, "/does/not/exist"))
	require.Equal(t, "missing", m.reason(t))
	require.Contains(t, texts(c.messages(), id), "waiting")

	load, line := c.request("session/load", rootsParams(id, a, b))
	c.send(line)
	require.Equal(t, "cancelled", c.response(prompt).stopReason(t))
	require.Nil(t, c.response(load).Error)
	_, promptAt := c.await(0, isResponse(prompt))
	_, loadAt := c.await(0, isResponse(load))
	require.Less(t, promptAt, loadAt)
	require.Contains(t, c.texts(id, "roots")[0], b)
	replayed := texts(c.messages()[promptAt:loadAt], id)
	require.Equal(t, []string{"waitinglast words"}, []string{strings.Join(replayed, "")}, "the ended turn is replayed whole")
	require.Contains(t, r.noted(), "cancel ")
}

func TestA27_LoadReplaysAndResumeDoesNot(t *testing.T) {
	store := sessionstore.NewMemory()
	c := connect(t, acp.Options{Store: store})
	c.initialize()
	a := folder(t)
	id := c.open(a)
	c.texts(id, "say one")
	c.texts(id, "tool")
	c.texts(id, "say two")
	c.leave()

	d := connect(t, acp.Options{Store: store})
	d.initialize()
	d.call("session/resume", rootsParams(id, a))
	require.Empty(t, texts(d.messages(), id))
	load := d.try("session/load", rootsParams(id, a))
	require.Nil(t, load.Error)
	require.Equal(t, []string{"one", "two"}, texts(d.messages(), id))
	require.Contains(t, encode(d.messages()), `"sessionUpdate":"user_message_chunk"`)
	require.Contains(t, encode(d.messages()), `"status":"failed"`)
}

func TestS3_AnotherProcessTakesTheSession(t *testing.T) {
	store := sessionstore.NewMemory()
	old, newer := connect(t, acp.Options{Store: store}), connect(t, acp.Options{Store: store})
	old.initialize()
	newer.initialize()
	a := folder(t)
	id := old.open(a)
	old.texts(id, "say mine")
	newer.call("session/load", rootsParams(id, a))
	m := old.try("session/prompt", promptParams(id, "say lost"))
	require.NotNil(t, m.Error)
	require.Equal(t, "fenced", m.reason(t))
	require.Contains(t, m.Error.Message, "another window")
	require.Equal(t, []string{"more"}, newer.texts(id, "say more"))
	m = old.try("session/prompt", promptParams(id, "say again"))
	require.Equal(t, -32002, m.Error.Code, "its roots were freed")
}
