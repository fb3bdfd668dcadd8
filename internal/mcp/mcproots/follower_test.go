package mcproots

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// client answers each request with its number, as soon as answers allows it.
type client struct {
	questions atomic.Int32
	answers   chan error // each value allows an answer; if nil, answers are immediate
	mu        sync.Mutex
	dropped   []int
}

func (c *client) ask(ctx context.Context) (int, error) {
	n := int(c.questions.Add(1))
	if c.answers == nil {
		return n, nil
	}
	select {
	case err := <-c.answers:
		return n, err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

func (c *client) drop(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dropped = append(c.dropped, n)
}

func (c *client) follow(o FollowOptions[int]) *Follower[int] {
	o.Ask, o.Drop = c.ask, c.drop
	return NewFollower(o)
}

func used(t *testing.T, f *Follower[int]) (got int, err error) {
	t.Helper()
	err = f.Use(t.Context(), func(n int) error { got = n; return nil })
	return got, err
}

// Clause M9.
func TestAnswerIsKeptUntilTheListChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &client{}
		f := c.follow(FollowOptions[int]{})
		defer f.Close()
		for range 3 {
			got, err := used(t, f)
			require.NoError(t, err)
			require.Equal(t, 1, got)
		}
		f.Changed()
		time.Sleep(time.Hour)
		require.EqualValues(t, 1, c.questions.Load(), "asked before it was needed")
		got, err := used(t, f)
		require.NoError(t, err)
		require.Equal(t, 2, got)
		require.Equal(t, []int{1}, c.dropped)
	})
}

// Clause M9.
func TestChangesDuringARequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &client{answers: make(chan error)}
		f := c.follow(FollowOptions[int]{})
		defer f.Close()
		f.AskNow(t.Context())
		for range 5 {
			f.AskNow(t.Context())
		}
		synctest.Wait()
		require.EqualValues(t, 1, c.questions.Load())
		waiting := make(chan int)
		go func() {
			got, _ := used(t, f)
			waiting <- got
		}()
		c.answers <- nil
		synctest.Wait()
		require.EqualValues(t, 2, c.questions.Load())
		c.answers <- nil
		require.Equal(t, 2, <-waiting, "the newest list wins")
		synctest.Wait()
		require.EqualValues(t, 2, c.questions.Load())
		require.Equal(t, []int{1}, c.dropped)
	})
}

// Clause M9.
func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &client{answers: make(chan error)}
		f := c.follow(FollowOptions[int]{Timeout: 3 * time.Second})
		defer f.Close()
		begin := time.Now()
		_, err := used(t, f)
		require.ErrorContains(t, err, "did not list its roots within 3s")
		require.Equal(t, 3*time.Second, time.Since(begin))

		for range 3 { // it costs its time once
			_, err = used(t, f)
			require.ErrorContains(t, err, "did not list its roots within 3s")
		}
		require.Equal(t, 3*time.Second, time.Since(begin))
		synctest.Wait()
		require.EqualValues(t, 2, c.questions.Load(), "it is asked again without waiting")
		c.answers <- nil
		synctest.Wait()
		got, err := used(t, f)
		require.NoError(t, err)
		require.Equal(t, 2, got)
		f.Changed()
		go func() { c.answers <- nil }()
		got, err = used(t, f)
		require.NoError(t, err)
		require.Equal(t, 3, got, "it is waited for again")
	})
}

// Clause M10.
func TestErrorLastsUntilAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &client{answers: make(chan error, 9)}
		f := c.follow(FollowOptions[int]{})
		defer f.Close()
		c.answers <- nil
		_, err := used(t, f)
		require.NoError(t, err)
		broken := errors.New("broken")
		c.answers <- broken
		f.Changed()
		_, err = used(t, f)
		require.ErrorIs(t, err, broken, "the list before is not in force")
		require.Equal(t, []int{1}, c.dropped)
		c.answers <- nil
		got, err := used(t, f)
		require.NoError(t, err)
		require.Equal(t, 3, got)
	})
}

// Clause M8.
func TestMaxAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &client{}
		f := c.follow(FollowOptions[int]{MaxAge: 5 * time.Second})
		defer f.Close()
		for _, step := range []struct {
			after time.Duration
			want  int
		}{{0, 1}, {5 * time.Second, 1}, {time.Second, 2}, {time.Second, 2}} {
			time.Sleep(step.after)
			got, err := used(t, f)
			require.NoError(t, err)
			require.Equal(t, step.want, got)
		}
	})
}

// Clause M9.
func TestReplacedValueIsDroppedAfterItsLastUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &client{}
		f := c.follow(FollowOptions[int]{})
		inUse, goOn := make(chan struct{}), make(chan struct{})
		done := make(chan error)
		go func() {
			done <- f.Use(t.Context(), func(int) error { close(inUse); <-goOn; return nil })
		}()
		<-inUse
		f.Changed()
		got, err := used(t, f)
		require.NoError(t, err)
		require.Equal(t, 2, got)
		require.Empty(t, c.dropped)
		close(goOn)
		require.NoError(t, <-done)
		require.Equal(t, []int{1}, c.dropped)
		f.Close()
		require.Equal(t, []int{1, 2}, c.dropped)
		_, err = used(t, f)
		require.ErrorIs(t, err, errDisconnected)
	})
}

// Clause M9.
func TestDisconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &client{answers: make(chan error)}
		f := c.follow(FollowOptions[int]{})
		failed := make(chan error)
		go func() { _, err := used(t, f); failed <- err }()
		synctest.Wait()
		f.Disconnect()
		require.ErrorIs(t, <-failed, errDisconnected)
		f.Close()

		never := (&client{}).follow(FollowOptions[int]{})
		never.Disconnect()
		_, err := used(t, never)
		require.ErrorIs(t, err, errDisconnected)
		never.AskNow(t.Context())
		never.Close()
	})
}

// Clause M9.
func TestListThatKeepsChanging(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &client{}
		var f *Follower[int]
		f = NewFollower(FollowOptions[int]{
			Ask:  func(ctx context.Context) (int, error) { f.Changed(); return c.ask(ctx) },
			Drop: c.drop,
		})
		defer f.Close()
		require.ErrorContains(t, f.Use(t.Context(), func(int) error { return nil }),
			"changed 100 times")
	})
}

// In any order of events, the value in use was requested after the last change, requests do not
// overlap, and every value is dropped once, after its last use.
//
// Clause M9.
func TestFollowerProperty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		steps := rapid.SliceOfN(rapid.IntRange(0, 3), 1, 40).Draw(rt, "steps")
		synctest.Test(t, func(t *testing.T) {
			var list, out atomic.Int64 // the client's list, and the number of pending requests
			inUse := map[int64]int{}
			dropped := map[int64]bool{}
			var mu sync.Mutex
			f := NewFollower(FollowOptions[int64]{
				Ask: func(context.Context) (int64, error) {
					require.EqualValues(t, 1, out.Add(1))
					defer out.Add(-1)
					version := list.Add(1 << 32) // the high bits distinguish answers
					time.Sleep(10 * time.Millisecond)
					return version, nil
				},
				Drop: func(n int64) {
					mu.Lock()
					defer mu.Unlock()
					require.Zero(t, inUse[n])
					require.False(t, dropped[n])
					dropped[n] = true
				},
			})
			var users sync.WaitGroup
			for _, step := range steps {
				switch step {
				case 0:
					list.Add(1)
					f.Changed()
				case 1:
					list.Add(1)
					f.AskNow(t.Context())
				case 2:
					time.Sleep(7 * time.Millisecond)
				case 3:
					before := list.Load() & 0xffffffff
					users.Go(func() {
						err := f.Use(t.Context(), func(n int64) error {
							require.GreaterOrEqual(t, n&0xffffffff, before)
							mu.Lock()
							inUse[n]++
							require.False(t, dropped[n])
							mu.Unlock()
							time.Sleep(15 * time.Millisecond)
							mu.Lock()
							inUse[n]--
							mu.Unlock()
							return nil
						})
						require.NoError(t, err)
					})
				}
			}
			users.Wait()
			f.Close()
			require.Len(t, dropped, int(list.Load()>>32))
		})
	})
}
