package process_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/process"
)

func TestOutput(t *testing.T) {
	out, err := process.Output(bounded(t), self("print"))
	require.NoError(t, err)
	require.Len(t, out, printed)

	out, err = process.Output(bounded(t), self("print after"))
	require.NoError(t, err)
	require.Len(t, out, 64<<10, "the beginning")

	out, _, err = process.Exchange(bounded(t), self("echo"), []byte("typed"), 100)
	require.NoError(t, err)
	require.Equal(t, "typed", string(out))
	_, _, err = process.Exchange(bounded(t), self("print"), make([]byte, 1<<20), 100)
	require.NoError(t, err, "a command may ignore its input")

	_, err = process.Output(bounded(t), self("complain"))
	var exit *process.ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, 3, exit.Code)
}

func TestRunInTerminal(t *testing.T) {
	var out, stderr strings.Builder
	in := strings.NewReader("typed")
	require.NoError(t, process.RunInTerminal(t.Context(), self("echo"), in, &out, &stderr))
	require.Equal(t, "typed", out.String())

	err := process.RunInTerminal(t.Context(), self("complain"), in, &out, &stderr)
	var exit *process.ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, process.ExitError{Name: "complain", Code: 3, Status: 3, State: "exit status 3"}, *exit)
	require.Contains(t, stderr.String(), "second")

	missing := process.Command{Path: "no-such-program"}
	var failed *process.StartError
	require.ErrorAs(t, process.RunInTerminal(t.Context(), missing, nil, nil, nil), &failed)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err = process.RunInTerminal(ctx, self("hold"), nil, nil, nil)
	require.ErrorIs(t, err, context.Canceled)
}
