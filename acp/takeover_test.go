package acp_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// hooked is a store in which a test steps in.
type hooked struct {
	*sessionstore.Memory

	mu         sync.Mutex
	creating   func() // called once, right before the next creation
	activating func() // called once, right before the next activation
	titling    func() // called once, right before the next title is stored
	appending  error  // of the next Append
	ending     error  // of the next EndTurn
}

func (h *hooked) Create(ctx context.Context, n sessionstore.NewSession) (sessionstore.Lease, error) {
	if step := take(&h.mu, &h.creating); step != nil {
		step()
	}
	return h.Memory.Create(ctx, n)
}

func (h *hooked) Activate(ctx context.Context, id sessionstore.ID, a sessionstore.Activation) (sessionstore.Lease, error) {
	if step := take(&h.mu, &h.activating); step != nil {
		step()
	}
	return h.Memory.Activate(ctx, id, a)
}

func (h *hooked) Append(ctx context.Context, l sessionstore.Lease, segment []sessionstore.Update) error {
	if err := take(&h.mu, &h.appending); err != nil {
		return err
	}
	return h.Memory.Append(ctx, l, segment)
}

func (h *hooked) SetTitle(ctx context.Context, l sessionstore.Lease, title string) error {
	if step := take(&h.mu, &h.titling); step != nil {
		step()
	}
	return h.Memory.SetTitle(ctx, l, title)
}

func (h *hooked) EndTurn(ctx context.Context, l sessionstore.Lease, r sessionstore.StopReason) error {
	if err := take(&h.mu, &h.ending); err != nil {
		return err
	}
	return h.Memory.EndTurn(ctx, l, r)
}

// take returns what is in place and clears it.
func take[T any](mu *sync.Mutex, place *T) (taken T) {
	mu.Lock()
	defer mu.Unlock()
	taken, *place = *place, taken
	return taken
}

func TestS3_ATakeOverThatMeetsAnothersIsNoHolders(t *testing.T) {
	store := &hooked{Memory: sessionstore.NewMemory()}
	r := &scripted{release: make(chan struct{})}
	late := sessionstore.RecorderOptions{Interval: time.Hour}
	old := connect(t, acp.Options{Store: store, Backend: func() backend.Backend { return r }}.With(acp.Tuning{Recorder: late, CancelGrace: patience}))
	newer := connect(t, acp.Options{Store: store})
	old.initialize()
	newer.initialize()
	a := folder(t)
	id := old.open(a)
	prompt, line := old.request("session/prompt", promptParams(id, "stubborn"))
	old.send(line)
	old.await(0, said("stubborn"))
	taken := make(chan struct{})
	store.activating = func() {
		defer close(taken)
		// The older process has seen that it holds the session, and is about to activate it.
		newer.call("session/load", rootsParams(id, a))
		newer.texts(id, "say yours")
	}
	load, line := old.request("session/load", rootsParams(id, a))
	old.send(line)
	<-taken
	require.Eventually(t, func() bool {
		return newer.try("session/prompt", promptParams(id, "say lost")).Error != nil
	}, patience, time.Millisecond)
	close(r.release)
	old.response(prompt)
	require.Nil(t, old.response(load).Error)
	_, answered := old.await(0, isResponse(prompt))
	replayed := texts(old.messages()[answered:], id)
	require.Contains(t, replayed, "yours")
	require.NotContains(t, encode(replayed), "stubborn", "the fenced turn is not recorded behind the newer one's")
}

func TestA29_ATurnThatALoadEndsIsActivityToItsEnd(t *testing.T) {
	for _, method := range []string{"session/load", "session/resume"} {
		t.Run(method, func(t *testing.T) {
			r := &scripted{release: make(chan struct{})}
			c := connect(t, acp.Options{Backend: func() backend.Backend { return r }}.With(acp.Tuning{CancelGrace: patience}))
			c.initialize()
			a, b := folder(t), folder(t)
			id := c.open(a)
			prompt, line := c.request("session/prompt", promptParams(id, "stubborn"))
			c.send(line)
			c.await(0, said("stubborn"))
			begun := c.find(id).UpdatedAt
			load, line := c.request(method, rootsParams(id, a, b))
			c.send(line)
			require.Eventually(t, func() bool { return len(c.find(id).AdditionalDirectories) == 1 }, patience, time.Millisecond)
			require.Equal(t, begun, c.find(id).UpdatedAt, "the load is no activity, and the turn goes on")
			released := later(t, begun)
			close(r.release)
			require.Equal(t, "cancelled", c.response(prompt).stopReason(t))
			require.Nil(t, c.response(load).Error)
			ended := c.find(id).UpdatedAt
			require.GreaterOrEqual(t, ended, released)
			later(t, ended)
			c.call(method, rootsParams(id, a))
			require.Equal(t, ended, c.find(id).UpdatedAt, "without a turn")
		})
	}
}

// later waits until the clock shows a later time than at, as a list shows times, and returns it.
func later(t *testing.T, at string) (now string) {
	t.Helper()
	require.Eventually(t, func() bool {
		now = time.Now().UTC().Format("2006-01-02T15:04:05.000Z07:00")
		return now > at
	}, patience, time.Millisecond)
	return now
}

func TestA14_ATurnWhoseEndWasNotStoredEndsWithTheNextLoad(t *testing.T) {
	store := &hooked{Memory: sessionstore.NewMemory()}
	c := connect(t, acp.Options{Store: store})
	c.initialize()
	a := folder(t)
	id := c.open(a)
	store.ending = &sessionstore.UnavailableError{Path: "/state/sessions.db", Hint: "free some space", Err: errors.New("disk full")}
	require.Equal(t, "store_unavailable", c.try("session/prompt", promptParams(id, "say one")).reason(t))
	c.call("session/resume", rootsParams(id, a))
	var fork struct{ SessionID string }
	require.NoError(t, json.Unmarshal(c.call("session/fork", rootsParams(id, a)), &fork))
	c.call("session/load", rootsParams(fork.SessionID, a))
	require.Equal(t, []string{"one"}, texts(c.messages(), fork.SessionID))
}
