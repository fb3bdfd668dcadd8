package model

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/internal/sandbox"
	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/interop/modelserver"
)

// lastResult returns the last result that the model was given.
func lastResult(e *editor) string {
	e.t.Helper()
	results := e.results()
	return results[len(results)-1]
}

// A client without terminals.
//
// Clause B2.
func TestRunChild(t *testing.T) {
	needShell(t)
	root, other := dirtest.New(t), dirtest.New(t, "sub/x", "")
	t.Setenv("ACP_AGENT_TEST_SECRET", "hidden")
	e := open(t, setup{roots: []string{root, other}, options: Options{
		Environment: append(os.Environ(), "ACP_AGENT_TEST_SECRET="),
	}})
	e.answer(rejectOnce)
	r := e.prompt("Run.", run("touch made"))
	require.Len(t, r.asked, 1)
	require.Contains(t, lastResult(e), "the user has rejected it")
	require.NoFileExists(t, filepath.Join(root, "made"))

	e.answer(allowOnce)
	r = e.prompt("Run.", run("echo one && pwd >&2", "cwd", filepath.Join(other, "sub")))
	require.Len(t, r.asked, 1)
	require.Equal(t, "one\n"+filepath.Join(other, "sub")+"\n[exit code 0]", lastResult(e))
	call := r.calls()[0]
	require.Equal(t, sdk.ToolCallStatusCompleted, call.Status)
	require.Contains(t, string(call.Content), `one\n`)

	for command, want := range map[string]string{
		"true":                        "[exit code 0]",
		"echo problem >&2; exit 3":    "problem\n[exit code 3]",
		"kill -9 $$":                  "[ended by signal: killed]",
		"cat; read x; echo \"<$x>\"":  "<>\n[exit code 0]",
		"exec 3</dev/tty":             "[exit code 2]",
		`printf '\033[31mred\033[0m'`: "red\n[exit code 0]",
		`printf '\377\0'`:             "\uFFFD\uFFFD\n[exit code 0]",
		"echo $ACP_AGENT_TEST_SECRET": "\n[exit code 0]",
		"no-such-program":             "[exit code 127]",
	} {
		r = e.prompt("Run.", run(command))
		require.Contains(t, lastResult(e), want, command)
		content := string(r.calls()[0].Content)
		require.Contains(t, content, want[strings.LastIndex(want, "["):], command)
	}
	e.call("session/set_mode", map[string]any{"modeId": readOnly})
	e.goOn()
	require.NotContains(t, e.last().Tools, "run_command")
}

// A command shows what it has printed while it runs, and its result has the beginning and the end.
func TestChildOutput(t *testing.T) {
	needShell(t)
	root := dirtest.New(t)
	e := open(t, setup{roots: []string{root}})
	e.answer(allowOnce)
	done := filepath.Join(root, "done")
	e.onUpdate = func(u update) {
		if strings.Contains(string(u.Content), "begun") {
			_ = os.WriteFile(done, nil, 0o600)
		}
	}
	r := e.prompt("Run.", run("echo begun; until [ -e done ]; do sleep 0.01; done"))
	require.Equal(t, "begun\n[exit code 0]", lastResult(e))
	require.Equal(t, sdk.ToolCallStatusCompleted, r.calls()[0].Status)

	e.prompt("Run.", run("echo begun; yes long line | head -n 100000; echo end"))
	got := lastResult(e)
	require.Less(t, len(got), maxResult+500)
	require.True(t, strings.HasPrefix(got, "begun\nlong line"))
	require.True(t, strings.HasSuffix(got, "long line\nend\n[exit code 0]"))
	require.Contains(t, got, "truncated")

	e.prompt("Run.", run("head -c 20000 /dev/zero"))
	require.Less(t, len(lastResult(e)), maxResult+500)
}

// A directory that is replaced while the user is asked is not the one that they were shown.
//
// Clause B2.
func TestChildDirectoryIsAsShown(t *testing.T) {
	needShell(t)
	outside, root := dirtest.New(t, "sub/x", ""), dirtest.New(t, "sub/x", "")
	e := open(t, setup{roots: []string{root}})
	e.onAsk = func(context.Context, question) decision {
		require.NoError(t, os.Rename(root, root+"-moved"))
		require.NoError(t, os.Symlink(outside, root))
		return allowOnce
	}
	e.prompt("Run.", run("touch made", "cwd", "sub"))
	require.Contains(t, lastResult(e), "was not run")
	require.NoFileExists(t, filepath.Join(outside, "sub", "made"))
}

// Clause N2.
func TestOnlyInSandbox(t *testing.T) {
	needShell(t)
	root := dirtest.New(t)
	e := open(t, setup{roots: []string{root}, options: Options{OnlyInSandbox: true}})
	r := e.prompt("Run.", modelserver.Invent("run_command", arguments("command", "touch made")))
	require.Contains(t, r.calls()[0].RawOutput.Text, `there is no tool "run_command"`)

	e.setup.options.Sandbox = func(model string) sandbox.Settings {
		if model == "other" {
			return sandbox.Settings{}
		}
		return sandbox.Settings{Mode: sandbox.Write}
	}
	e.setup.more = []Model{{ID: "other", BaseURL: e.model.URL() + "/v1", Name: "scripted"}}
	e.stop()
	e.connect()
	session, err := e.client.NewSession(t.Context(), client.Setup{Roots: e.lifecycle().Roots})
	require.NoError(t, err)
	e.id = session.ID
	e.onAsk = func(context.Context, question) decision {
		e.call("session/set_config_option", map[string]any{"configId": "model", "value": "other"})
		return allowOnce
	}
	e.prompt("Run.", run("touch made"))
	require.Contains(t, lastResult(e), "the model that the user has chosen has no sandbox")
	r = e.prompt("Run.", modelserver.Invent("run_command", arguments("command", "touch made")))
	require.Contains(t, r.calls()[0].RawOutput.Text, `there is no tool "run_command"`)
	require.NoFileExists(t, filepath.Join(root, "made"))
}

// A program that draws its progress over and over in one line has printed the last state of it.
func TestPlainOutput(t *testing.T) {
	for printed, want := range map[string]string{
		"10 %\r20 %\r100 %\nDone\n": "100 %\nDone\n", "10 %\r20 %\r\nDone\r\n": "20 %\nDone\n",
		"10 %\r": "10 %\n", "\r\r\n": "\n", "": "", "\x1b[31mred\x1b[0m": "red\n",
	} {
		require.Equal(t, want, plainOutput(printed), "%q", printed)
	}
}
