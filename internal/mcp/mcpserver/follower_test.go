package mcpserver

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// numbers answers each request with its number, as soon as answers allows it.
type numbers struct {
	questions atomic.Int32
	answers   chan error // each value allows an answer; if nil, answers are immediate
	mu        sync.Mutex
	dropped   []int
}

// numbered returns a scope that has nothing but a number, and numberOf that.
func numbered(n int) *scope { return closedScope(sourceClient, strconv.Itoa(n)) }

func numberOf(sc *scope) int {
	n, _ := strconv.Atoi(sc.reason)
	return n
}

func (c *numbers) ask(ctx context.Context) (*scope, error) {
	n := int(c.questions.Add(1))
	if c.answers == nil {
		return numbered(n), nil
	}
	select {
	case err := <-c.answers:
		return numbered(n), err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (c *numbers) drop(sc *scope) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dropped = append(c.dropped, numberOf(sc))
}

func (c *numbers) follow(timeout, maxAge time.Duration) *follower {
	f := newFollower(c.ask, timeout, maxAge)
	f.drop = c.drop
	return f
}

func used(t *testing.T, f *follower) (got int, err error) {
	t.Helper()
	err = f.use(t.Context(), func(sc *scope) error { got = numberOf(sc); return nil })
	return got, err
}

// Clauses M9, M10.
func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &numbers{answers: make(chan error)}
		f := c.follow(3*time.Second, 0)
		defer f.close()
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
		f.changed()
		go func() { c.answers <- nil }()
		got, err = used(t, f)
		require.NoError(t, err)
		require.Equal(t, 3, got, "it is waited for again")
	})
}

// Clause M10.
func TestErrorLastsUntilAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &numbers{answers: make(chan error, 9)}
		f := c.follow(patience, 0)
		defer f.close()
		c.answers <- nil
		_, err := used(t, f)
		require.NoError(t, err)
		broken := errors.New("broken")
		c.answers <- broken
		f.changed()
		_, err = used(t, f)
		require.ErrorIs(t, err, broken, "the list before is not in force")
		synctest.Wait()
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
		c := &numbers{}
		f := c.follow(patience, 5*time.Second)
		defer f.close()
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
func TestDisconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &numbers{answers: make(chan error)}
		f := c.follow(patience, 0)
		failed := make(chan error)
		go func() { _, err := used(t, f); failed <- err }()
		synctest.Wait()
		f.disconnect()
		require.ErrorIs(t, <-failed, errDisconnected)
		f.close()

		never := (&numbers{}).follow(patience, 0)
		never.disconnect()
		_, err := used(t, never)
		require.ErrorIs(t, err, errDisconnected)
		never.askNow(t.Context())
		never.close()
	})
}

// Clause M9.
func TestListThatKeepsChanging(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &numbers{}
		f := c.follow(patience, 0)
		f.ask = func(ctx context.Context) (*scope, error) {
			f.changed()
			time.Sleep(time.Second)
			return numbered(0), ctx.Err()
		}
		defer f.close()
		_, err := used(t, f)
		require.ErrorContains(t, err, "did not list its roots within")
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
			inUse := map[int]int{}
			dropped := map[int]bool{}
			var mu sync.Mutex
			ask := func(context.Context) (*scope, error) {
				require.EqualValues(t, 1, out.Add(1))
				defer out.Add(-1)
				version := list.Add(1 << 32) // the high bits distinguish answers
				time.Sleep(10 * time.Millisecond)
				return numbered(int(version)), nil
			}
			f := newFollower(ask, patience, 0)
			f.drop = func(sc *scope) {
				mu.Lock()
				defer mu.Unlock()
				n := numberOf(sc)
				require.Zero(t, inUse[n])
				require.False(t, dropped[n])
				dropped[n] = true
			}
			var users sync.WaitGroup
			for _, step := range steps {
				switch step {
				case 0:
					list.Add(1)
					f.changed()
				case 1:
					list.Add(1)
					f.askNow(t.Context())
				case 2:
					time.Sleep(7 * time.Millisecond)
				case 3:
					before := list.Load() & 0xffffffff
					users.Go(func() {
						err := f.use(t.Context(), func(sc *scope) error {
							n := numberOf(sc)
							require.GreaterOrEqual(t, int64(n)&0xffffffff, before)
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
			f.close()
			require.Len(t, dropped, int(list.Load()>>32))
		})
	})
}
