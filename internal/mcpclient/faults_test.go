package mcpclient_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/mcpclient"
	"github.com/acp-agent/acp-agent/internal/testutil/proctest"
)

func TestFaultGarbageOnStdoutIsSkipped(t *testing.T) {
	f := with(t, mcpclient.Options{})
	f.change(open(t, folder(t)), self("s", "garbage"))
	require.Equal(t, "0", f.call("s.count", ""))
	require.Contains(t, f.logs.String(), "Welcome to the server!")
}

func TestFaultAFloodIsSlowedDown(t *testing.T) {
	f := with(t, mcpclient.Options{}.With(mcpclient.Limits{MaxNotices: 2000}))
	f.change(open(t, folder(t)), self("s", "flood"))
	require.Equal(t, "after the flood", f.call("s.count", ""))
}

func TestFaultAThousandQuestionsAtOnce(t *testing.T) {
	f := with(t, mcpclient.Options{})
	f.change(open(t, folder(t)), self("s", "thousand"))
	f.call("s.count", "")
	require.Eventually(t, func() bool { return f.logs.Count("1000 answers") == 1 }, patience, 5*time.Millisecond)
}

func TestFaultAQuestionBeforeInitialized(t *testing.T) {
	f := with(t, mcpclient.Options{})
	f.change(open(t, folder(t)), self("s", "early"))
	require.Equal(t, "1", f.call("s.count", ""), "it is answered")
}

func TestFaultAServerThatEndsAtAnUnknownQuestion(t *testing.T) {
	f := with(t, mcpclient.Options{})
	f.change(open(t, folder(t)), self("s", "no discover"))
	require.Equal(t, "0", f.call("s.count", ""))
	require.Equal(t, "2025-11-25", f.Servers()[0].Revision)
}

func TestFaultAServerThatNeverAnswers(t *testing.T) {
	f := with(t, mcpclient.Options{}.With(mcpclient.Limits{StartTimeout: 300 * time.Millisecond, ProbeTimeout: 100 * time.Millisecond, MaxRestarts: 1}))
	f.change(open(t, folder(t)), self("s", "silent"))
	_, err := f.try("s.count", "")
	require.ErrorContains(t, err, "has not answered initialize within 300ms")
}

func TestFaultAServerThatDiesDuringACallIsRestarted(t *testing.T) {
	f := with(t, mcpclient.Options{})
	f.change(open(t, folder(t)), self("s", "sdk"))
	_, err := f.try("s.die", "")
	require.ErrorContains(t, err, "MCP server s: it ended during the call")
	require.NotZero(t, f.where("s").PID, "started again")
	require.Equal(t, 1, f.Servers()[0].Restarts)
	require.Contains(t, f.logs.String(), "exit status 4")
	require.Contains(t, f.logs.String(), "out of memory")
}

func TestFaultAServerThatDiesAgainAndAgainIsGivenUp(t *testing.T) {
	f := with(t, mcpclient.Options{}.With(mcpclient.Limits{MaxRestarts: 2, Backoff: time.Millisecond}))
	f.change(open(t, folder(t)), self("s", "exit"))
	_, err := f.try("s.x", "")
	require.ErrorContains(t, err, "exit status 3")
	status := f.state(backend.ServerFailed)
	require.Equal(t, 2, status.Restarts)
}

func TestFaultALineThatIsTooLong(t *testing.T) {
	f := with(t, mcpclient.Options{}.With(mcpclient.Limits{MaxMessage: 1 << 20}))
	f.change(open(t, folder(t)), self("s", "long line"))
	_, err := f.try("s.count", "")
	require.Error(t, err)
	require.Eventually(t, func() bool { return f.logs.Count("more than 1 MiB") > 0 }, patience, 5*time.Millisecond)
}

func TestFaultAnswersThatTheSDKCannotRead(t *testing.T) {
	f := with(t, mcpclient.Options{})
	f.change(open(t, folder(t)), self("s", "null answers"))
	_, err := f.try("s.count", "")
	require.Error(t, err)
	tools, err := f.List(t.Context())
	require.NoError(t, err)
	require.Len(t, tools, 3, "the connection goes on")
}

func TestW9_GrandchildrenEndWithTheirServer(t *testing.T) {
	h := proctest.Watch(t)
	f := with(t, mcpclient.Options{})
	c := self("s", "sdk", h.Env())
	wrapper := c
	wrapper.Name, wrapper.Command, wrapper.Args = "wrapper", "sh", []string{"-c", "", c.Command}
	if _, err := os.Stat("/bin/sh"); err != nil {
		t.Skip("no shell")
	}
	// A job in the background has no input unless it is given ours.
	wrapper.Args[1] = `exec 3<&0; "$0" <&3 & wait`
	f.change(open(t, folder(t)), wrapper)
	f.call("wrapper.echo", "{}")
	grandchild := h.Next()
	require.NoError(t, f.Close(t.Context()))
	grandchild.Ended()
}

func TestW9_AServerThatDoesNotWantToEnd(t *testing.T) {
	h := proctest.Watch(t)
	f := with(t, mcpclient.Options{})
	f.change(open(t, folder(t)), self("s", "stubborn", h.Env()))
	listed := make(chan struct{})
	go func() {
		defer close(listed)
		_, _ = f.List(context.Background())
	}()
	stubborn := h.Next()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.NoError(t, f.Close(ctx))
	stubborn.Ended()
	<-listed
}
