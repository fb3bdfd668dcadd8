package mcpclient

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

func unreported(context.Context, *mcp.ProgressNotificationParams) {}

// While a server waits for the user, the time that its calls may take does not pass.
//
// Clause M13.
func TestTimeoutsArePaused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls activeCalls
		late := &lateError{errors.New("late"), time.Minute}
		one := calls.begin(t.Context(), late, unreported).ctx
		time.Sleep(50 * time.Second)
		resume, again := calls.pause(), calls.pause()
		two := calls.begin(t.Context(), late, unreported)
		time.Sleep(time.Hour)
		again()
		time.Sleep(time.Hour)
		synctest.Wait()
		require.NoError(t, one.Err())
		require.NoError(t, two.ctx.Err())
		calls.end(two)
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
		late := &lateError{errors.New("late"), 10 * time.Minute}
		progress := func(token any) {
			calls.progress(t.Context(), &mcp.ProgressNotificationClientRequest{
				Params: &mcp.ProgressNotificationParams{ProgressToken: token}})
		}
		a := calls.begin(t.Context(), late, unreported)
		silent := calls.begin(t.Context(), late, unreported).ctx
		for range 12 {
			time.Sleep(9 * time.Minute)
			progress(a.token)
			progress("another")
			progress(7)
		}
		synctest.Wait()
		require.NoError(t, a.ctx.Err())
		require.Equal(t, late, context.Cause(silent))
		resume := calls.pause()
		progress(a.token)
		time.Sleep(time.Hour)
		synctest.Wait()
		require.NoError(t, a.ctx.Err(), "it waits for the user")
		resume()
		time.Sleep(10*time.Minute + time.Second)
		require.Equal(t, late, context.Cause(a.ctx))
		progress(a.token) // which is too late
		calls.end(a)
		progress(a.token)
	})
}

// A call that was cancelled is waited for until the server has been told.
func TestWaitForCancelledCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls activeCalls
		a := calls.begin(t.Context(), &lateError{limit: time.Hour}, unreported)
		var over atomic.Bool
		go func() {
			calls.wait(t.Context())
			over.Store(true)
		}()
		a.cancel(context.Canceled)
		synctest.Wait()
		require.False(t, over.Load())
		calls.end(a)
		synctest.Wait()
		require.True(t, over.Load())
	})
}

// Clause M13.
func TestContextOfCalls(t *testing.T) {
	var calls activeCalls
	_, _, ok := calls.during(t.Context())
	require.False(t, ok, "there are none")
	var active []*activeCall
	for range 2 {
		active = append(active, calls.begin(t.Context(), &lateError{limit: time.Hour}, unreported))
	}
	ctx, cancel, ok := calls.during(t.Context())
	require.True(t, ok)
	defer cancel(nil)
	calls.end(active[0])
	require.NoError(t, ctx.Err(), "one of them goes on")
	calls.cancel()
	<-ctx.Done()
}
