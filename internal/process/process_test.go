package process_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/internal/test/tabletest"
)

func start(t *testing.T, c process.Command, o process.Options) *process.Process {
	t.Helper()
	p, err := process.Start(t.Context(), c, o)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		require.NoError(t, p.Stop(ctx))
		p.Stdout().Close()
	})
	return p
}

func bounded(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeoutCause(t.Context(), patience, errors.New("took too long"))
	t.Cleanup(cancel)
	return ctx
}

func TestStdinAndStdout(t *testing.T) {
	p := start(t, self("echo"), process.Options{})
	_, err := io.WriteString(p.Stdin(), "hello\n")
	require.NoError(t, err)
	line, err := bufio.NewReader(p.Stdout()).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "hello\n", line)
	require.Positive(t, p.PID())
	require.Equal(t, "echo", p.Name())
}

// Clause W9.
func TestClosingStdinEndsTheChild(t *testing.T) {
	p := start(t, self("echo"), process.Options{Grace: patience})
	require.NoError(t, p.Stop(bounded(t)))
	require.NoError(t, p.Wait(t.Context()), "it ended by itself, with status 0")
	require.NoError(t, p.Stop(t.Context()), "stopping twice is fine")
	_, err := io.WriteString(p.Stdin(), "late")
	require.ErrorIs(t, err, os.ErrClosed)
}

// Clause W9.
func TestClosingStdoutDoesNotEndTheChild(t *testing.T) {
	p := start(t, self("close stdout"), process.Options{Grace: patience})
	_, err := io.ReadAll(p.Stdout())
	require.NoError(t, err)
	select {
	case <-p.Done():
		require.Fail(t, "it lives")
	default:
	}
	require.NoError(t, p.Stop(bounded(t)))
	require.NoError(t, p.Wait(t.Context()))
}

func TestOutputIsCompleteAfterTheEnd(t *testing.T) {
	p := start(t, self("print"), process.Options{})
	require.NoError(t, p.Wait(bounded(t)))
	out, err := io.ReadAll(p.Stdout())
	require.NoError(t, err)
	require.Len(t, out, printed)
}

func TestClosedOutputIsDiscarded(t *testing.T) {
	p := start(t, self("print after"), process.Options{Grace: patience})
	reading := make(chan error)
	go func() {
		_, err := p.Stdout().Read(make([]byte, 1))
		reading <- err
	}()
	require.NoError(t, p.Stdout().Close())
	require.ErrorIs(t, <-reading, os.ErrClosed, "a read that waits is woken")
	require.ErrorIs(t, p.Stdout().Close(), os.ErrClosed)
	require.NoError(t, p.Stop(bounded(t)))
	require.NoError(t, p.Wait(t.Context()),
		"it could write more than a pipe holds, and was not ended by it")
}

func TestExitError(t *testing.T) {
	p := start(t, self("complain"), process.Options{})
	var exit *process.ExitError
	require.ErrorAs(t, p.Wait(bounded(t)), &exit)
	require.Equal(t, process.ExitError{Name: "complain", Code: 3, Status: 3, State: "exit status 3",
		Stderr: []string{"last"}}, *exit)
	require.Equal(t, `complain ended: exit status 3: last`, exit.Error())
}

// The lines that explain the end of a program begin with ">".
func TestExitError_explanation(t *testing.T) {
	for name, lines := range tabletest.Read(t, "explanations.txt") {
		var want []string
		for i, line := range lines {
			mark, text := line[:2], line[2:]
			if lines[i] = text; mark == "> " {
				want = append(want, text)
			}
		}
		require.Equal(t, want, process.Explanation(lines), name)
	}
	for line, want := range map[string][]string{
		"":                                    nil,
		"Error: " + strings.Repeat("x", 1000): {"Error: " + strings.Repeat("x", 293) + "…"},
		"Error: \x1b[2J":                      {"Error: \uFFFD[2J"},
	} {
		require.Equal(t, want, process.Explanation([]string{line}))
	}
	usage := slices.Concat([]string{"Unknown option: --x", "Usage:"}, slices.Repeat([]string{"  --flag  sets it"}, 90),
		[]string{"See the manual."})
	require.Equal(t, usage[:1], process.Explanation(usage))
}

func TestExitError_status127(t *testing.T) {
	p := start(t, self("not found"), process.Options{})
	require.ErrorContains(t, p.Wait(bounded(t)), "PATH")
}

func TestWaitEndsWithItsContext(t *testing.T) {
	p := start(t, self("echo"), process.Options{})
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	require.EqualError(t, p.Wait(ctx), "enough")
}

func TestStartError(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), mode))
		return path
	}
	for name, c := range map[string]struct {
		command process.Command
		is      error
		says    []string
	}{
		"not in PATH": {process.Command{Path: "no-such-agent"}, exec.ErrNotFound,
			[]string{`cannot start "no-such-agent"`, "$PATH",
				"if it is installed, use its absolute path"}},
		"no such file": {process.Command{Path: filepath.Join(dir, "none")}, os.ErrNotExist,
			[]string{"check that the path exists"}},
		"no command": {process.Command{}, nil, []string{"no command given"}},
		"no directory": {process.Command{Path: "sh", Dir: filepath.Join(dir, "none")},
			os.ErrNotExist, []string{"working directory"}},
		"not executable": {process.Command{Path: write("plain", "", 0o600)}, os.ErrPermission,
			nil},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := process.Start(t.Context(), c.command, process.Options{})
			var failed *process.StartError
			require.ErrorAs(t, err, &failed)
			require.NotContains(t, err.Error(), os.Getenv("PATH"))
			require.Equal(t, c.command, failed.Command)
			if c.is != nil {
				require.ErrorIs(t, err, c.is)
			}
			for _, text := range c.says {
				require.ErrorContains(t, err, text)
			}
		})
	}
}

func TestStartWithCancelledContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	_, err := process.Start(ctx, self("echo"), process.Options{})
	require.EqualError(t, err, "enough")
}
