package postgres_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/pgtest"
	"github.com/acp-agent/acp-agent/internal/test/storetest"
	"github.com/acp-agent/acp-agent/internal/test/volume"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// Turns are stored while connections are ended by the database or cut on the way, and the database
// is restarted. Of what was acknowledged nothing is lost, and nothing is there twice.
//
// Clauses S1, N3.
func TestTurnsThroughFaults(t *testing.T) {
	const writers = 8
	each := volume.Of(10, 16_000/writers)
	var database pgtest.Server
	t.Cleanup(database.Stop)
	direct := database.Address(t)
	var cuts atomic.Int64
	stores := []sessionstore.Store{open(t, direct), open(t, through(t, direct,
		func(_, to net.Conn, content []byte, _ bool) error {
			if rand.IntN(200) == 0 {
				cuts.Add(1)
				return net.ErrClosed
			}
			_, err := to.Write(content)
			return err
		}))}
	all := make([]*turnWriter, writers)
	done := make(chan struct{})
	var running sync.WaitGroup
	for i := range all {
		w := &turnWriter{store: stores[i%len(stores)]}
		w.lease = storetest.Create(t, stores[0], fmt.Sprint(i))
		all[i] = w
		running.Go(func() { w.err = w.run(t, each) })
	}
	go func() {
		defer close(done)
		running.Wait()
	}()
	ended, restarts := 0, 0
	for isDone := false; !isDone; {
		select {
		case <-done:
			isDone = true
		case <-time.After(time.Duration(rand.IntN(100)) * time.Millisecond):
			if rand.IntN(20) > 0 {
				disconnect(t, direct)
				ended++
				continue
			}
			database.Suspend()
			database.Resume(t)
			restarts++
		}
	}
	turns, failures := 0, 0
	for _, w := range all {
		require.NoError(t, w.err)
		w.requireStored(t, stores[0])
		turns, failures = turns+len(w.turns), failures+w.failures
	}
	t.Logf("%d turns acknowledged, %d calls failed; connections ended %d times, %d cut, %d restarts",
		turns, failures, ended, cuts.Load(), restarts)
}

// turnWriter runs turns in a session.
type turnWriter struct {
	store    sessionstore.Store
	lease    sessionstore.Lease
	turns    []string // that were acknowledged
	failures int
	err      error
}

// run runs turns until a number of them was acknowledged. A turn that fails is followed by another.
func (w *turnWriter) run(t *testing.T, number int) error {
	for n := 0; len(w.turns) < number; n++ {
		turn := fmt.Sprintf("turn %d.", n)
		err := w.runTurn(t, turn)
		if err == nil {
			w.turns = append(w.turns, turn)
			continue
		}
		if !errors.As(err, new(*sessionstore.UnavailableError)) {
			return err
		}
		w.failures++
		time.Sleep(time.Millisecond) // the database may be away
	}
	return nil
}

func (w *turnWriter) runTurn(t *testing.T, turn string) error {
	number, err := w.store.BeginTurn(t.Context(), w.lease,
		sessionstore.Turn{Prompt: storetest.Said(turn + "prompt")})
	if err == nil {
		err = w.store.Append(t.Context(), w.lease, storetest.Said(turn+"answer"))
	}
	if err == nil {
		err = w.store.EndTurn(t.Context(), w.lease, number, storetest.Said(turn+"end")...)
	}
	return err
}

// requireStored finds the turns that were acknowledged, in order and once, and no others than those
// that failed.
func (w *turnWriter) requireStored(t *testing.T, s sessionstore.Store) {
	t.Helper()
	count := map[string]int{}
	var all strings.Builder
	for u, err := range s.History(t.Context(), w.lease.ID) {
		require.NoError(t, err)
		_, text, _ := strings.Cut(u.String(), `"text":"`)
		text, _, _ = strings.Cut(text, `"`)
		count[text]++
		require.Equal(t, 1, count[text], text)
		all.WriteString(text + "\n")
	}
	rest := all.String()
	for _, turn := range w.turns {
		_, after, ok := strings.Cut(rest, turn+"prompt\n"+turn+"answer\n"+turn+"end\n")
		require.True(t, ok, "%s of session %s was acknowledged and is lost", turn, w.lease.ID)
		rest = after
	}
	require.LessOrEqual(t, len(count), 3*(len(w.turns)+w.failures))
}
