package acp_test

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/test/memstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// answering is a backend whose sessions answer session/close with its params.
type answering struct{ scripted }

type answeringSession struct{ backend.Session }

func (r *answering) Open(
	ctx context.Context, a backend.Activation, h backend.Host,
) (backend.Session, backend.Opened, error) {
	s, opened, err := r.scripted.Open(ctx, a, h)
	return answeringSession{s}, opened, err
}

func (s answeringSession) CloseFor(ctx context.Context, params backend.Raw) (backend.Raw, error) {
	return backend.Raw(`{"params":` + string(params) + `,"sessionId":"theirs"}`), s.Close(ctx)
}

// Clause P6.
func TestCloseKeepsMeta(t *testing.T) {
	r := &answering{}
	c := start(t, acp.Options{Backend: using(r)})
	a := folder(t)
	id := c.open(a)
	require.Equal(t, `{"params":{"_meta":{"n":1.0}}}`,
		string(c.call("session/close", `{"_meta":{"n":1.0},"sessionId":"`+id+`"}`)))
	require.Equal(t, "{}", string(c.call("session/close", idParams(id))), "inactive")
	c.call("session/load", rootsParams(id, a))
	c.call("session/load", rootsParams(id, a))
	require.Equal(t, "{}", string(c.call("session/delete", idParams(id))))
	c.leave()
	closed := slices.DeleteFunc(r.noted(), func(e string) bool { return e != "close" })
	require.Len(t, closed, 3, "each activation once")
}

// However a session ends, its directories are let go of: what it opened cannot be used any more. No
// memory is held either, of what its backend was given and everything that refers to it.
//
// Clause A28.
func TestClosedSessionHoldsNothing(t *testing.T) {
	for name, end := range map[string]func(c, newer *client, id, cwd string){
		"A28/close": func(c, _ *client, id, _ string) {
			c.call("session/close", idParams(id))
		},
		"A28/delete": func(c, _ *client, id, _ string) {
			c.call("session/delete", idParams(id))
		},
		"A12/a load": func(c, _ *client, id, cwd string) {
			c.call("session/load", rootsParams(id, cwd))
		},
		"W9/the client left": func(c, _ *client, _, _ string) { c.leave() },
		"S3/another process": func(c, newer *client, id, cwd string) {
			newer.call("session/load", rootsParams(id, cwd))
			require.Equal(c.t, "fenced",
				c.try("session/prompt", promptParams(id, "say lost")).reason(c.t))
		},
		"S3/deleted elsewhere": func(c, newer *client, id, _ string) {
			newer.call("session/delete", idParams(id))
			require.Equal(c.t, "not_found",
				c.try("session/prompt", promptParams(id, "say lost")).reason(c.t))
		},
	} {
		t.Run(name, func(t *testing.T) {
			store, opened := memstore.New(t), make(chan *workspace.Workspace, 10)
			r := &scripted{opened: func(_ backend.Activation, h backend.Host) {
				opened <- h.Workspace()
			}}
			c := start(t, acp.Options{Store: store, Backend: r.serve})
			newer := start(t, acp.Options{Store: store})
			a := folder(t)
			id := c.open(a, folder(t))
			w := <-opened
			_, err := w.Stat(a)
			require.NoError(t, err)
			c.texts(id, "say one")
			end(c, newer, id, a)
			require.Eventually(t, func() bool {
				_, err := w.Stat(a)
				return errors.Is(err, workspace.ErrClosed)
			}, patience, time.Millisecond)
			held := weak.Make(w)
			w = nil
			require.Eventually(t, func() bool {
				goruntime.GC()
				return held.Value() == nil
			}, patience, time.Millisecond)
		})
	}
}

// An id is remembered while something is done for it, and not a moment longer.
//
// Clause A28.
func TestClosedQueuesHoldNoMemory(t *testing.T) {
	const ids, size = 64, 64 << 10
	c := start(t, acp.Options{})
	live := func() int64 {
		goruntime.GC()
		goruntime.GC() // what is pooled goes with the second
		var m goruntime.MemStats
		goruntime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	long := strings.Repeat("x", size)
	c.call("session/close", idParams(long)) // the buffers have grown
	before := live()
	for i := range ids {
		c.call("session/close", idParams(fmt.Sprint(i, long)))
		c.send(notification("session/cancel", idParams(fmt.Sprint(i, long))))
	}
	c.list(`{}`)
	var kept int64 // by the client, which records what it sends
	for _, line := range c.Lines() {
		kept += int64(len(line.Text))
	}
	require.Less(t, live()-before-kept, int64(ids*size/2))
}
