package mcpclient

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// While a server waits for the user, the time that its calls may take does not pass.
//
// Clause M13.
func TestTimeoutsArePaused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls activeCalls
		late := errors.New("late")
		begin := func() (context.Context, *activeCall) {
			ctx, a, ok := calls.begin(t.Context(), time.Minute, late, func(context.Context, *activeCall) {})
			require.True(t, ok)
			return ctx, a
		}
		one, _ := begin()
		time.Sleep(50 * time.Second)
		resume, again := calls.pause(), calls.pause()
		two, ended := begin()
		time.Sleep(time.Hour)
		again()
		time.Sleep(time.Hour)
		synctest.Wait()
		require.NoError(t, one.Err())
		require.NoError(t, two.Err())
		ended.end()
		resume()
		time.Sleep(59 * time.Second)
		require.NoError(t, one.Err())
		time.Sleep(2 * time.Second)
		require.Equal(t, late, context.Cause(one))
	})
}

// Clause M13.
func TestContextOfCalls(t *testing.T) {
	var calls activeCalls
	_, _, ok := calls.during(t.Context())
	require.False(t, ok, "there are none")
	var active []*activeCall
	for range 2 {
		_, a, _ := calls.begin(t.Context(), time.Hour, nil, func(context.Context, *activeCall) {})
		active = append(active, a)
	}
	ctx, cancel, ok := calls.during(t.Context())
	require.True(t, ok)
	defer cancel(nil)
	active[0].end()
	require.NoError(t, ctx.Err(), "one of them goes on")
	calls.close()
	<-ctx.Done()
}
