package sessionstore_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/memstore"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

type update = sessionstore.Update

// slow is a store whose appends the test can block.
type slow struct {
	sessionstore.Store
	// gate, if not nil, blocks appends until it is closed.
	gate chan struct{}

	mu   sync.Mutex
	done [][]update
}

// appends returns the segments that were appended.
func (s *slow) appends() [][]update {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.done)
}

func (s *slow) Append(ctx context.Context, l sessionstore.Lease, segment []update) error {
	if s.gate != nil {
		select {
		case <-s.gate:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	s.mu.Lock()
	s.done = append(s.done, segment)
	s.mu.Unlock()
	return s.Store.Append(ctx, l, segment)
}

// recording runs test with a recorder of a new session and a simulated clock.
func recording(t *testing.T, o sessionstore.RecorderOptions, test func(*testing.T, *slow, *sessionstore.Recorder)) {
	synctest.Test(t, func(t *testing.T) {
		s := &slow{Store: memstore.New(t)}
		dir, err := workspace.ParseDir(t.TempDir())
		require.NoError(t, err)
		keys := sessionstore.Keys{Roots: workspace.RootsFrom(dir, workspace.Dirs{}), Real: []workspace.Dir{dir}}
		lease, err := s.Create(t.Context(), sessionstore.Session{ID: "one", Keys: keys})
		require.NoError(t, err)
		r := sessionstore.NewRecorder(func(ctx context.Context, segment []update) error {
			return s.Append(ctx, lease, segment)
		}, o)
		defer r.Close(t.Context())
		test(t, s, r)
	})
}

func history(t *testing.T, s sessionstore.Store) []string {
	t.Helper()
	var all []update
	for u, err := range s.History(t.Context(), "one") {
		require.NoError(t, err)
		all = append(all, u)
	}
	return strs(all)
}

func chunk(kind, words string) update {
	return parse(fmt.Sprintf(`{"update":{"sessionUpdate":"%s_chunk","content":{"type":"text","text":%q}}}`, kind, words))
}

func strs(updates []update) []string {
	out := []string{}
	for _, u := range updates {
		out = append(out, u.String())
	}
	return out
}

func call(n int) update {
	return parse(fmt.Sprintf(`{"update":{"sessionUpdate":"tool_call","toolCallId":"%d"}}`, n))
}

func TestRecorderInterval(t *testing.T) {
	recording(t, sessionstore.RecorderOptions{}, func(t *testing.T, s *slow, r *sessionstore.Recorder) {
		for i := range 5 {
			require.NoError(t, r.Record(t.Context(), call(i)))
			time.Sleep(10 * time.Millisecond)
		}
		synctest.Wait()
		require.Empty(t, s.appends())
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		require.Len(t, s.appends(), 1)
		require.Len(t, s.appends()[0], 5)
		require.NoError(t, r.Record(t.Context(), call(5)))
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		require.Len(t, s.appends(), 2)
	})
}

func TestRecorderSegmentBytes(t *testing.T) {
	recording(t, sessionstore.RecorderOptions{SegmentBytes: 1000}, func(t *testing.T, s *slow, r *sessionstore.Recorder) {
		start := time.Now()
		for i := range 100 {
			require.NoError(t, r.Record(t.Context(), call(i)))
		}
		synctest.Wait()
		require.Equal(t, start, time.Now())
		require.Greater(t, len(s.appends()), 3)
		require.NoError(t, r.Flush(t.Context()))
		require.Len(t, history(t, s), 100)
		for _, segment := range s.appends() {
			require.Less(t, len(segment), 25)
		}
	})
}

func TestRecorderFlush(t *testing.T) {
	recording(t, sessionstore.RecorderOptions{}, func(t *testing.T, s *slow, r *sessionstore.Recorder) {
		require.NoError(t, r.Flush(t.Context()), "nothing to wait for")
		s.gate = make(chan struct{})
		require.NoError(t, r.Record(t.Context(), call(1)))
		flushed := make(chan error, 1)
		go func() { flushed <- r.Flush(t.Context()) }()
		synctest.Wait()
		require.Empty(t, flushed)
		impatient, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, r.Flush(impatient), context.DeadlineExceeded)
		close(s.gate)
		require.NoError(t, <-flushed)
		require.Equal(t, strs([]update{call(1)}), history(t, s))
	})
}

// Clause W11.
func TestRecorderQueueBytes(t *testing.T) {
	recording(t, sessionstore.RecorderOptions{SegmentBytes: 100, QueueBytes: 2000}, func(t *testing.T, s *slow, r *sessionstore.Recorder) {
		s.gate = make(chan struct{})
		n := 0
		full := make(chan error)
		go func() {
			for ; n < 500; n++ {
				if err := r.Record(t.Context(), call(n)); err != nil {
					full <- err
					return
				}
			}
			full <- nil
		}()
		synctest.Wait()
		require.Greater(t, n, 20)
		require.Less(t, n, 60)
		impatient, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, r.Record(impatient, call(0)), context.DeadlineExceeded)
		close(s.gate)
		require.NoError(t, <-full)
		require.NoError(t, r.Flush(t.Context()))
		require.Len(t, history(t, s), 500)
	})
}

func TestRecorderJoinsChunks(t *testing.T) {
	recording(t, sessionstore.RecorderOptions{}, func(t *testing.T, s *slow, r *sessionstore.Recorder) {
		usage := func(n int) update {
			return parse(fmt.Sprintf(`{"update":{"sessionUpdate":"usage_update","used":%d}}`, n))
		}
		for _, u := range []update{
			chunk("agent_message", "a"), usage(1), chunk("agent_message", "b"), usage(2), call(1),
			parse(`{"update":{"sessionUpdate":"session_info_update","title":"x"}}`), chunk("agent_message", "c"),
		} {
			require.NoError(t, r.Record(t.Context(), u))
		}
		require.NoError(t, r.Flush(t.Context()))
		require.Equal(t, strs([]update{chunk("agent_message", "ab"), call(1), chunk("agent_message", "c")}), history(t, s))
		states, err := s.States(t.Context(), "one")
		require.NoError(t, err)
		require.Equal(t, strs([]update{usage(2)}), strs(states))
	})
}

// Clause S3.
func TestRecorderIsFenced(t *testing.T) {
	recording(t, sessionstore.RecorderOptions{QueueBytes: 100}, func(t *testing.T, s *slow, r *sessionstore.Recorder) {
		require.NoError(t, r.Record(t.Context(), call(1)))
		require.NoError(t, r.Flush(t.Context()))
		session, err := s.Get(t.Context(), "one")
		require.NoError(t, err)
		_, err = s.Activate(t.Context(), "one", sessionstore.Activation{Keys: session.Keys})
		require.NoError(t, err)
		s.gate = make(chan struct{})
		long := parse(`{"update":{"pad":"` + strings.Repeat("x", 200) + `"}}`)
		require.NoError(t, r.Record(t.Context(), long))
		time.Sleep(100 * time.Millisecond) // it is on its way to the store
		require.NoError(t, r.Record(t.Context(), long))
		blocked := make(chan error)
		go func() { blocked <- r.Record(t.Context(), call(2)) }()
		synctest.Wait()
		close(s.gate)
		<-r.Failed()
		var fenced *sessionstore.FencedError
		require.ErrorAs(t, r.Err(), &fenced)
		require.ErrorAs(t, <-blocked, &fenced)
		require.ErrorAs(t, r.Record(t.Context(), call(3)), &fenced)
		require.ErrorAs(t, r.Flush(t.Context()), &fenced)
		require.ErrorAs(t, r.Close(t.Context()), &fenced)
		require.Equal(t, strs([]update{call(1)}), history(t, s))
	})
}

func TestRecorderClose(t *testing.T) {
	recording(t, sessionstore.RecorderOptions{}, func(t *testing.T, s *slow, r *sessionstore.Recorder) {
		require.NoError(t, r.Record(t.Context(), call(1)))
		require.NoError(t, r.Close(t.Context()))
		require.Len(t, history(t, s), 1)
		require.ErrorIs(t, r.Record(t.Context(), call(2)), sessionstore.ErrClosed)
		require.NoError(t, r.Close(t.Context()), "again")
	})
}

func TestRecorderCloseIsCancelled(t *testing.T) {
	recording(t, sessionstore.RecorderOptions{}, func(t *testing.T, s *slow, r *sessionstore.Recorder) {
		s.gate = make(chan struct{})
		require.NoError(t, r.Record(t.Context(), call(1)))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, r.Close(ctx), context.DeadlineExceeded)
	})
}
