package proxy_test

import (
	"context"
	"fmt"
	"log/slog"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/proxy"
	"github.com/acp-agent/acp-agent/internal/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/internal/testutil/logtest"
)

func requireEnded(t *testing.T, err error, status int) {
	t.Helper()
	var (
		ended *proxy.EndedError
		exit  *process.ExitError
	)
	require.ErrorAs(t, err, &ended)
	require.ErrorAs(t, err, &exit)
	require.Equal(t, status, exit.Code)
	for _, text := range []string{"scripted", fmt.Sprintf("exit status %d", status), "log", "child=scripted", "try again"} {
		require.ErrorContains(t, err, text)
	}
}

func TestACrashEndsTheTurn(t *testing.T) {
	b := initialized(t, plain+opened+"await session/prompt\nsend "+fmt.Sprintf(update, `"last"`)+
		`send {"jsonrpc":"2.0","id":1,"method":"session/request_permission","params":{"sessionId":"child-1"}}`+
		"\nstderr out of memory\nexit 3\n", proxy.Options{})
	b.editor.answers["session/request_permission"] = func() (backend.Raw, error) { return nil, jsonrpc.ErrClosed }
	s, _ := b.open()
	_, err := b.prompt(s)
	requireEnded(t, err, 3)
	require.ErrorContains(t, err, "out of memory")
	require.Equal(t, `turn update {"update":"last"}`, b.editor.next(), "what it said before is not lost")
	require.Equal(t, `host call session/request_permission {}`, b.editor.next())

	// The next prompt starts it anew, and it ends in the same way.
	_, err = b.prompt(s)
	requireEnded(t, err, 3)
	require.Equal(t, `turn update {"update":"last"}`, b.editor.next())
	require.Len(t, b.received("initialize"), 2)
	s.Notify(t.Context(), "_x/note", nil)
	b.runtime.Notify(t.Context(), "_x/note", nil)
	s.Cancel(nil)
	require.NoError(t, s.Close(t.Context()))
	_, err = b.prompt(s)
	require.ErrorContains(t, err, "closed")
}

func TestWhatADyingChildSaidIsNotLostThoughItTakesNoInput(t *testing.T) {
	b := initialized(t, plain+opened+"await session/prompt\nrepeat 2000 "+fmt.Sprintf(update, "$i")+"exit 3\n", proxy.Options{})
	blocked := make(chan struct{})
	b.editor.block = func(context.Context, string) error {
		<-blocked
		return nil
	}
	s, _ := b.open()
	r := b.running(s)
	b.editor.next()
	for range 100 { // it may have ended by now
		s.Notify(t.Context(), "_x/note", nil)
	}
	close(blocked)
	_, err := await(t, r.work)
	requireEnded(t, err, 3)
	for i := 1; i < 2000; i++ {
		require.Equal(t, fmt.Sprintf(`turn update {"update":%d}`, i), b.editor.next())
	}
}

func TestAnAgentThatClosesItsOutputIsEnded(t *testing.T) {
	b := initialized(t, plain+opened+"await session/prompt\nclose\n", proxy.Options{})
	s, _ := b.open()
	_, err := b.prompt(s)
	var ended *proxy.EndedError
	require.ErrorAs(t, err, &ended)
	require.NoError(t, ended.Exit)
	require.ErrorContains(t, err, "exit status 0")
}

func TestGarbageOnStdoutIsPassedOver(t *testing.T) {
	b := initialized(t, "send Welcome to the agent!\nsend [1,2]\n"+plain+"send \nsend {\"half\":\n"+opened+"await session/prompt\nsend null\n"+
		"send "+fmt.Sprintf(update, `"good"`)+answered, proxy.Options{})
	s, _ := b.open()
	_, err := b.prompt(s)
	require.NoError(t, err)
	require.Equal(t, `turn update {"update":"good"}`, b.editor.next())
}

func TestInitializeSaysWhatIsWrong(t *testing.T) {
	for name, c := range map[string]struct {
		script  string
		options proxy.Options
		says    []string
	}{
		"hangs": {"", proxy.Options{StartTimeout: time.Millisecond},
			[]string{"did not answer initialize within 1ms", "log", "child=scripted"}},
		"ends": {"stderr not logged in\nexit 4\n", proxy.Options{}, []string{"exit status 4", "not logged in"}},
		"other version": {"await initialize\n" + `send {"jsonrpc":"2.0","id":$initialize$,"result":{"protocolVersion":2}}` + "\n",
			proxy.Options{}, []string{"speaks version 2 of ACP"}},
		"refuses": {"await initialize\n" + `send {"jsonrpc":"2.0","id":$initialize$,"error":{"code":-32000,"message":"log in"}}` + "\n",
			proxy.Options{}, []string{"log in"}},
		"no object": {"await initialize\n" + `send {"jsonrpc":"2.0","id":$initialize$,"result":7}` + "\n",
			proxy.Options{}, []string{"cannot be read"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := start(t, c.script, c.options)
			_, err := b.runtime.Initialize(t.Context(), backend.Raw(`{"protocolVersion":1}`), b.editor)
			for _, text := range c.says {
				require.ErrorContains(t, err, text)
			}
			_, err = await(t, b.runtime.Call(t.Context(), "authenticate", nil))
			require.ErrorContains(t, err, "initialize comes first")
		})
	}
}

func TestACommandThatIsNotThereIsSaidSo(t *testing.T) {
	p := proxy.New(process.Command{Path: "no-such-agent"}, proxy.Options{})
	_, err := p.Initialize(t.Context(), backend.Raw(`{}`), newEditor(t))
	require.ErrorIs(t, err, exec.ErrNotFound)
	require.ErrorContains(t, err, "PATH")
	require.NoError(t, p.Close(t.Context()))
}

func TestAFailedInitializeMayBeFollowedByAnother(t *testing.T) {
	b := start(t, plain, proxy.Options{})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := b.runtime.Initialize(ended, backend.Raw(`{}`), b.editor)
	require.ErrorIs(t, err, context.Canceled)
	_, err = b.runtime.Initialize(t.Context(), backend.Raw(`{}`), b.editor)
	require.NoError(t, err)
}

func TestSessionNewThatFailsLeavesNothing(t *testing.T) {
	b := initialized(t, plain+
		"await session/new\n"+`send {"jsonrpc":"2.0","id":$session/new$,"error":{"code":-32000,"message":"log in"}}`+"\n"+
		"await session/new\n"+`send {"jsonrpc":"2.0","id":$session/new$,"result":{}}`+"\n"+
		opened+opened, proxy.Options{})
	open := func() error {
		_, _, err := b.runtime.Open(t.Context(), backend.Activation{Cause: backend.New, Params: backend.Raw(`{"cwd":"/a"}`)}, host{b.editor})
		return err
	}
	var refused *jsonrpc.Error
	require.ErrorAs(t, open(), &refused)
	require.Equal(t, -32000, refused.Code)
	require.ErrorContains(t, open(), "without a session id")
	require.NoError(t, open())
	require.ErrorContains(t, open(), "the id of another one")
}

func TestW9_CloseEndsTheAgent(t *testing.T) {
	var log logtest.Text
	b := initialized(t, capable+opened+"await session/close\n"+
		`send {"jsonrpc":"2.0","id":$session/close$,"error":{"code":-32002,"message":"unknown"}}`+"\n",
		proxy.Options{Logger: log.Logger(slog.LevelInfo)})
	s, _ := b.open()
	require.NoError(t, s.Close(t.Context()), "a session that is not there is closed")
	require.Len(t, b.received("session/close"), 1)
	require.NotContains(t, log.String(), "by itself")
	_, err := await(t, b.runtime.Call(t.Context(), "_x/any", nil))
	require.Error(t, err)
}

func TestSessionCloseIsSentOnlyIfAdvertised(t *testing.T) {
	b := initialized(t, plain+opened, proxy.Options{})
	s, _ := b.open()
	require.NoError(t, s.Close(t.Context()))
	require.Empty(t, b.received("session/close"))
}
