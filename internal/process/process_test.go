package process_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/process"
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

func TestExitError_explanation(t *testing.T) {
	for name, c := range map[string]struct{ stderr, explains string }{
		"nothing": {"", ""},
		"Node.js": {
			"loaded 3 plugins\nnode:internal/modules/esm/resolve:283\n    throw new " +
				"ERR_MODULE_NOT_FOUND(\n          ^\n\n" +
				"Error [ERR_MODULE_NOT_FOUND]: Cannot find module '/a/b.mjs' imported from " +
				"/a/c.mjs\n    at one (node:internal:1:1)\n" +
				"    at two (node:internal:1:1)\n    at three (node:internal:1:1)\n    at four " +
				"(node:internal:1:1)\n    at five (node:internal:1:1) {\n" +
				"  code: 'ERR_MODULE_NOT_FOUND'\n}\n\nNode.js v22.23.3\n",
			"Error [ERR_MODULE_NOT_FOUND]: Cannot find module '/a/b.mjs' imported from " +
				"/a/c.mjs\n    at one (node:internal:1:1)\n" +
				"    at two (node:internal:1:1)\n    at three (node:internal:1:1)\n    at four " +
				"(node:internal:1:1)",
		},
		"Python": {
			"Traceback (most recent call last):\n  File \"<string>\", line 1, in <module>\n    " +
				"raise ValueError('x')\nValueError: x\n",
			"ValueError: x",
		},
		"Go": {"panic: no\n\ngoroutine 1 [running]:\nmain.main()\n",
			"panic: no\ngoroutine 1 [running]:\nmain.main()"},
		"npm": {"npm ERR! code E404\nnpm ERR! 404 Not Found\n",
			"npm ERR! code E404\nnpm ERR! 404 Not Found"},
		"Go flags": {"flag provided but not defined: -x\nUsage of server:\n  -a string\n    \tthe a\n",
			"flag provided but not defined: -x"},
		"clap": {"error: unexpected argument '--x' found\n\n  tip: try '--y'\n\n" +
			"Usage: server [OPTIONS]\n\nFor more information, try '--help'.\n",
			"error: unexpected argument '--x' found\n  tip: try '--y'"},
		"argparse": {"usage: server [-h] --root ROOT\nserver: error: the following arguments are " +
			"required: --root\n",
			"server: error: the following arguments are required: --root"},
		"a long usage": {"Unknown option: --x\nUsage:\n" + strings.Repeat("  --flag  sets it\n", 90) +
			"See the manual.\n", "Unknown option: --x"},
		"only a usage": {"Server 1.0\nUsage: server DIR\n  --help  shows this\n",
			"Usage: server DIR\n  --help  shows this"},
		"a path is no error": {"reading /var/error/x, 0 errors\nbye\n", "bye"},
		"a long line": {"Error: " + strings.Repeat("x", 1000),
			"Error: " + strings.Repeat("x", 293) + "…"},
		"control characters": {"Error: \x1b[2J", "Error: \uFFFD[2J"},
		"an older error": {"Error: the model is busy\n" + process.Later +
			"\nTypeError: x is null\n", "TypeError: x is null"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.explains, strings.Join(
				process.Explanation(strings.Split(c.stderr, "\n")), "\n"))
		})
	}
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
