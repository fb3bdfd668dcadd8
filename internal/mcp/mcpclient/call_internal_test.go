package mcpclient

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
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
			a := calls.begin(t.Context(), time.Minute, late, func(context.Context, *mcp.ProgressNotificationParams) {})
			return a.ctx, a
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
		calls.end(ended)
		resume()
		time.Sleep(59 * time.Second)
		require.NoError(t, one.Err())
		time.Sleep(2 * time.Second)
		require.Equal(t, late, context.Cause(one))
	})
}

// A call has its whole time again whenever it reports progress, but only that call.
func TestProgressExtendsCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls activeCalls
		late := errors.New("late")
		begin := func() (context.Context, *activeCall) {
			a := calls.begin(t.Context(), 10*time.Minute, late, func(context.Context, *mcp.ProgressNotificationParams) {})
			return a.ctx, a
		}
		progress := func(token any) {
			calls.progress(t.Context(), &mcp.ProgressNotificationClientRequest{
				Params: &mcp.ProgressNotificationParams{ProgressToken: token}})
		}
		long, a := begin()
		silent, _ := begin()
		for range 12 {
			time.Sleep(9 * time.Minute)
			progress(a.token)
			progress("another")
			progress(7)
		}
		synctest.Wait()
		require.NoError(t, long.Err())
		require.Equal(t, late, context.Cause(silent))
		resume := calls.pause()
		progress(a.token)
		time.Sleep(time.Hour)
		synctest.Wait()
		require.NoError(t, long.Err(), "it waits for the user")
		resume()
		time.Sleep(10*time.Minute + time.Second)
		require.Equal(t, late, context.Cause(long))
		progress(a.token) // which is too late
		calls.end(a)
		progress(a.token)
	})
}

// Clause M13.
func TestContextOfCalls(t *testing.T) {
	var calls activeCalls
	_, _, ok := calls.during(t.Context())
	require.False(t, ok, "there are none")
	var active []*activeCall
	for range 2 {
		active = append(active, calls.begin(t.Context(), time.Hour, nil, func(context.Context, *mcp.ProgressNotificationParams) {}))
	}
	ctx, cancel, ok := calls.during(t.Context())
	require.True(t, ok)
	defer cancel(nil)
	calls.end(active[0])
	require.NoError(t, ctx.Err(), "one of them goes on")
	calls.cancel()
	<-ctx.Done()
}
