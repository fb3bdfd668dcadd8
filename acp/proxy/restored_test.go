package proxy_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/acp/proxy"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// full is a store that takes no activation while it is full.
type full struct {
	*sessionstore.Memory
	is atomic.Bool
}

func (f *full) Activate(ctx context.Context, id sessionstore.ID, a sessionstore.Activation) (sessionstore.Lease, error) {
	if f.is.Load() {
		return sessionstore.Lease{}, &sessionstore.UnavailableError{Path: "/state", Hint: "free some space", Err: errors.New("disk full")}
	}
	return f.Memory.Activate(ctx, id, a)
}

func TestA13_AfterAFailedLoadTheAgentHasTheRootsOfBefore(t *testing.T) {
	for name, a := range map[string]abilities{
		"it resumes": {Resume: true, Roots: true}, "it loads": {Load: true, Roots: true}, "both": {Load: true, Resume: true, Roots: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, a, proxy.Options{})
			store := &full{Memory: sessionstore.NewMemory()}
			h.store = store
			v := h.enter()
			first := roots(t, 1)
			s, err := v.NewSession(t.Context(), client.Setup{Roots: first})
			require.NoError(t, err)
			v.say(s.ID, "one")
			store.is.Store(true)
			_, err = v.LoadSession(t.Context(), s.ID, client.Setup{Roots: roots(t, 2)})
			require.Error(t, err)
			_, err = v.LoadSession(t.Context(), s.ID, client.Setup{Roots: with(first, t.TempDir())})
			require.ErrorContains(t, err, "disk full")
			require.Equal(t, "agent N:one+two", v.say(s.ID, "two"), "the session goes on")
			store.is.Store(false)
			_, err = v.LoadSession(t.Context(), s.ID, client.Setup{Roots: with(first)})
			require.NoError(t, err)
			v.leave()
			var lists []string
			for _, r := range h.received() {
				if r.method == "session/new" || r.method == "session/load" || r.method == "session/resume" {
					_, list, _ := strings.Cut(r.params, `"additionalDirectories":`)
					list, _, _ = strings.Cut(list, "]")
					lists = append(lists, list)
				}
			}
			require.Len(t, lists, 4)
			require.Equal(t, lists[0], lists[2], "the list that is in force")
			require.NotEqual(t, lists[0], lists[1])
			require.Equal(t, "[", lists[3])
		})
	}
}
