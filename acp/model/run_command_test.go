package model

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/permission/consent"
	"github.com/acp-agent/acp-agent/internal/sandbox"
	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/interop/modelserver"
	"github.com/acp-agent/acp-agent/internal/test/interop/terminals"
	"github.com/acp-agent/acp-agent/internal/test/needs"
	"github.com/acp-agent/acp-agent/workspace"
)

type requests = map[string]func(context.Context, json.RawMessage) (json.RawMessage, error)

// offered returns the methods of a client that offers terminals. All of them must be released.
func offered(t testing.TB) requests {
	host := terminals.New(nil)
	t.Cleanup(func() { require.Zero(t, host.Close(), "terminals that were not released") })
	return host.Requests()
}

// needShell skips the test where commands are not run by a shell that understands them.
func needShell(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the commands of this test need a POSIX shell")
	}
}

// run is an order to run a command.
func run(command string, more ...any) modelserver.Order {
	return modelserver.UseWith("run_command",
		arguments(append([]any{"command", command}, more...)...))
}

func TestRunCommand(t *testing.T) {
	needShell(t)
	root, other := dirtest.New(t), dirtest.New(t, "sub/x", "")
	e := open(t, setup{roots: []string{root, other}, requests: offered(t)})
	result := func(r reply) string {
		t.Helper()
		require.Equal(t, sdk.StopReasonEndTurn, r.stop)
		results := e.results()
		return results[len(results)-1]
	}
	e.answer(allowOnce)

	r := e.prompt("Run.", run("echo one && pwd | cat", "cwd", filepath.Join(other, "sub")))
	require.Equal(t, "one\n"+filepath.Join(other, "sub")+"\n[exit code 0]", result(r))
	require.Len(t, r.asked, 1)
	shown := r.asked[0].Call
	require.Equal(t, "`echo one && pwd | cat`", shown.Title)
	require.Equal(t, sdk.ToolKindExecute, shown.Tool)
	require.Contains(t, string(shown.Content), filepath.Join(other, "sub"))
	require.Contains(t, string(shown.Content), "pwd | cat")
	call := r.calls()[0]
	require.Equal(t, sdk.ToolCallStatusCompleted, call.Status)
	require.JSONEq(t, `[{"type":"terminal","terminalId":"terminal 1"}]`, string(call.Content))

	r = e.prompt("Run.", run("echo problem >&2; exit 3"))
	require.Equal(t, "problem\n[exit code 3]", result(r))
	require.Equal(t, sdk.ToolCallStatusFailed, r.calls()[0].Status)
	require.Contains(t, string(r.calls()[0].Content), "terminal 2")

	r = e.prompt("Run.", run(`printf '\033[31mred\033[0m \033]0;title\007text'`))
	require.Equal(t, "red text\n[exit code 0]", result(r))

	r = e.prompt("Run.", run("yes long line | head -n 20000; echo end"))
	require.Less(t, len(result(r)), maxResult+1000)
	require.Contains(t, result(r), "truncated")
	require.Contains(t, result(r), "long line\nend\n[exit code 0]")

	r = e.prompt("Run.", run("echo begun; exec sleep 1000", "timeout_seconds", 1))
	require.Equal(t, "begun\n[killed, because it had not ended after 1s]", result(r))
	require.Equal(t, sdk.ToolCallStatusFailed, r.calls()[0].Status)

	r = e.prompt("Run.", run("kill -9 $$"))
	require.Equal(t, "[ended by signal SIGKILL]", result(r))
}

// Clause B2.
func TestCommandPermission(t *testing.T) {
	needShell(t)
	root := dirtest.New(t, "sub/x", "")
	e := open(t, setup{roots: []string{root}, requests: offered(t)})
	asked := func(order modelserver.Order) int { return len(e.prompt("Run.", order).asked) }

	e.answer(rejectOnce)
	require.Equal(t, 1, asked(run("touch made")))
	require.Contains(t, e.results()[0], "the user has rejected it")
	require.NoFileExists(t, filepath.Join(root, "made"))

	e.call("session/set_mode", map[string]any{"modeId": acceptEdits})
	e.answer(allowAlways)
	require.Equal(t, 1, asked(run("touch made")), "accepting edits does not accept commands")
	require.FileExists(t, filepath.Join(root, "made"))
	require.Equal(t, 0, asked(run("touch made")))
	e.answer(allowOnce)
	require.Equal(t, 1, asked(run("touch made2")), "another command")
	require.Equal(t, 1, asked(run("touch made", "cwd", "sub")), "another directory")
	require.Equal(t, 1, asked(run("touch made; rm made")))

	e.answer(cancelQuestion)
	r := e.prompt("Run.", run("touch made3"))
	require.Equal(t, sdk.StopReasonCancelled, r.stop)
	require.Equal(t, sdk.ToolCallStatusFailed, r.calls()[0].Status)
	require.Contains(t, string(r.calls()[0].Content), "The call did not run")
	require.NoFileExists(t, filepath.Join(root, "made3"))
}

// Allowing a command for good covers the content of the files that it names.
//
// Clause B2.
func TestAllowedCommandCoversItsFiles(t *testing.T) {
	needShell(t)
	root := dirtest.New(t, "run.sh", "echo one\n", "sub/go.sh", "echo two\n", "inner.sh", "echo three\n")
	e := open(t, setup{roots: []string{root}, requests: offered(t)})
	e.call("session/set_mode", map[string]any{"modeId": acceptEdits})
	for command, file := range map[string]string{
		"sh ./run.sh > out.txt": "run.sh", "cd sub && sh 'go.sh'": "sub/go.sh",
		"sh late.sh || true": "late.sh", "sh -c 'sh inner.sh'": "inner.sh",
	} {
		e.answer(allowAlways)
		asked := e.prompt("Run.", run(command)).asked
		require.Len(t, asked, 1, command)
		label := "even if files that it runs change"
		if file != "late.sh" {
			shown := map[string]string{"run.sh": "./run.sh", "sub/go.sh": "go.sh", "inner.sh": "inner.sh"}
			label = "as long as " + shown[file] + " does not change"
		}
		require.Contains(t, asked[0].Options[1].Name, label)
		require.Empty(t, e.prompt("Run.", run(command)).asked, command)
		write := arguments("path", file, "content", "echo evil\n")
		require.Empty(t, e.prompt("Change.", modelserver.UseWith("write_file", write)).asked)
		e.answer(rejectOnce)
		require.Len(t, e.prompt("Run.", run(command)).asked, 1, "%s: the file has changed", command)
	}
	e.answer(allowAlways)
	require.Contains(t, e.prompt("Run.", run("true")).asked[0].Options[1].Name,
		"even if files that it runs change")
}

// A command that was allowed as long as a file stays as it is asks again once the file is too large
// to be compared.
//
// Clause B2.
func TestAllowedCommandWithFilesThatGrow(t *testing.T) {
	needShell(t)
	root := dirtest.New(t, "data", "small\n")
	e := open(t, setup{roots: []string{root}, requests: offered(t)})
	e.answer(allowAlways)
	grow := run("cat data | wc -c; truncate -s 65M data")
	require.Contains(t, e.prompt("Run.", grow).asked[0].Options[1].Name, "as long as data does not")
	e.answer(rejectOnce)
	require.Len(t, e.prompt("Run.", grow).asked, 1)
	require.Len(t, e.prompt("Run.", grow).asked, 1, "it stays so")
}

// A directory that is replaced while the user is asked is not the one that they were shown.
//
// Clause B2.
func TestCommandDirectoryIsAsShown(t *testing.T) {
	needShell(t)
	outside, root := dirtest.New(t, "sub/x", ""), dirtest.New(t, "sub/x", "", "other/x", "")
	for to, want := range map[string]string{outside: "cannot run a command there",
		"other": "now points somewhere else"} {
		e := open(t, setup{roots: []string{root}, requests: offered(t)})
		e.onAsk = func(context.Context, question) decision {
			sub := filepath.Join(root, "sub")
			if err := errors.Join(os.RemoveAll(sub), os.Symlink(to, sub)); err != nil {
				t.Error(err)
			}
			return allowOnce
		}
		require.NoError(t, os.RemoveAll(filepath.Join(root, "sub")))
		require.NoError(t, os.Mkdir(filepath.Join(root, "sub"), 0o700))
		r := e.prompt("Run.", run("touch made", "cwd", "sub"))
		require.Len(t, r.asked, 1)
		require.Contains(t, e.results()[0], want)
		require.NoFileExists(t, filepath.Join(outside, "made"))
		require.NoFileExists(t, filepath.Join(root, "other", "made"))
	}
}

func TestCommandsInOtherScripts(t *testing.T) {
	needShell(t)
	e := open(t, setup{requests: offered(t)})
	e.answer(allowOnce)
	e.prompt("Run.", run("echo 👩\u200d💻 می\u200cخواهم ❤\ufe0f 世界\u3000です"))
	require.Contains(t, e.results()[0], "[exit code 0]")
}

func TestCancelledCommand(t *testing.T) {
	needShell(t)
	e := open(t, setup{requests: offered(t)})
	e.answer(allowOnce)
	e.cancelAfter(func(u update) bool { return u.Status == sdk.ToolCallStatusInProgress })
	r := e.prompt("Run.", run("echo begun; exec sleep 1000"))
	require.Equal(t, sdk.StopReasonCancelled, r.stop)
	require.Equal(t, sdk.ToolCallStatusFailed, r.calls()[0].Status)
	e.goOn()
	require.Contains(t, e.results()[0], "interrupted")
}

// A session that is closed, or loaded again, in the middle of a command leaves no terminal behind.
func TestCommandsEndWithTheSession(t *testing.T) {
	needShell(t)
	for _, method := range []string{"session/close", "session/load"} {
		t.Run(method, func(t *testing.T) {
			host := terminals.New(nil)
			e := open(t, setup{requests: host.Requests()})
			e.answer(allowOnce)
			ended := e.begin("Run.", run("echo begun; exec sleep 1000"))
			require.Eventually(t, func() bool { return len(host.Asked()) == 1 }, patience, time.Millisecond)
			e.call(method, map[string]any{"cwd": e.setup.roots[0], "mcpServers": []any{}})
			<-ended
			require.Zero(t, host.Close())
		})
	}
}

func TestClientsWithoutWorkingTerminals(t *testing.T) {
	for method, result := range map[string]string{
		"terminal/create": "the client cannot run the " +
			"command", "terminal/wait_for_exit": "the client has lost the command",
		"terminal/output": "does not return its output",
	} {
		t.Run(strings.TrimPrefix(method, "terminal/"), func(t *testing.T) {
			served := offered(t)
			served[method] = func(context.Context, json.RawMessage) (json.RawMessage, error) {
				return nil, errors.New("broken")
			}
			e := open(t, setup{requests: served})
			e.answer(allowOnce)
			r := e.prompt("Run.", run("true"))
			require.Equal(t, modelserver.Done, r.text())
			require.Contains(t, e.results()[0], result)
		})
	}
}

// A client cannot restrict what its terminals run. The sandbox gets the session's roots as they
// really are.
//
// Clause X1.
func TestCommandRunsInTheSandbox(t *testing.T) {
	needShell(t)
	root, other, outside := dirtest.New(t), dirtest.New(t), dirtest.New(t)
	t.Setenv("TMPDIR", dirtest.New(t)) // not the directory that others are in
	link := filepath.Join(dirtest.New(t), "link")
	require.NoError(t, os.Symlink(other, link))
	var asked []string
	o := Options{Sandbox: func(model string) sandbox.Settings {
		asked = append(asked, model)
		return sandbox.Settings{Mode: sandbox.Write}
	}}
	e := open(t, setup{roots: []string{root, link}, requests: offered(t), options: o})
	e.answer(allowOnce)
	r := e.prompt("Run.", run("echo here; echo >"+other+"/in; echo >"+outside+"/out"))
	require.Equal(t, "local", asked[0])
	require.Contains(t, e.results()[0], "here\n")
	require.NotContains(t, string(r.calls()[0].Content), "terminalId")
	require.FileExists(t, filepath.Join(other, "in"))
	require.NoFileExists(t, filepath.Join(outside, "out"))
}

// A rule holds for a root, in all sessions, until it is revoked.
//
// Clause B2.
func TestCommandRules(t *testing.T) {
	needShell(t)
	root, other := dirtest.New(t, "Makefile", "check:\n\t@echo checked $(X)\n", "sub/Makefile", "check:\n"),
		dirtest.New(t, "Makefile", "check:\n")
	state := filepath.Join(t.TempDir(), "consents")
	e := open(t, setup{roots: []string{root, other}, consents: state})
	e.answer(allowAlways)
	asked := e.prompt("Run.", run("make check")).asked
	require.Len(t, asked, 1)
	require.Equal(t, "Always: run `make check ...` in "+filepath.Base(root), asked[0].Options[1].Name)
	require.Contains(t, string(asked[0].Call.Content), "not asked for again with these options: `-k ")
	require.Empty(t, e.prompt("Run.", run("make check -s -j 2")).asked)
	require.Empty(t, e.prompt("Run.", run("make  check", "cwd", "sub")).asked)
	e.restart()
	require.Empty(t, e.prompt("Run.", run("make check")).asked)

	e.answer(rejectOnce)
	for _, line := range []string{"make check; echo x", "make check $(echo x)", "make", "make clean",
		"make check clean", "make check X=1", "make check -f /x"} {
		require.Len(t, e.prompt("Run.", run(line)).asked, 1, line)
	}
	require.Len(t, e.prompt("Run.", run("make check", "cwd", other)).asked, 1)

	store := consent.NewStore(state)
	all, err := store.List()
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.Equal(t, "run make check ...", all[0].Rule)
	require.NoError(t, store.Forget(all[0].ID))
	require.Len(t, e.prompt("Run.", run("make check")).asked, 1)
}

// A rule for git holds for the shown options and for files in the roots, and nothing that the
// repository configures runs.
//
// Clause R3.
func TestRulesOfGit(t *testing.T) {
	needShell(t)
	for name, requests := range map[string]requests{"child": nil, "terminal": offered(t)} {
		t.Run(name, func(t *testing.T) {
			root := dirtest.New(t, "a.txt", "needle\n", "hooks/post-index-change", "#!/bin/sh\ntouch ran\n",
				"x", "touch ran\n")
			require.NoError(t, os.Chmod(filepath.Join(root, "hooks", "post-index-change"), 0o755))
			for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"config", "core.hooksPath", "hooks"}} {
				require.NoError(t, exec.Command("git", append([]string{"-C", root}, args...)...).Run())
			}
			changed := time.Now().Add(time.Hour)
			require.NoError(t, os.Chtimes(filepath.Join(root, "a.txt"), changed, changed))
			state := filepath.Join(t.TempDir(), "consents")
			e := open(t, setup{roots: []string{root}, requests: requests, consents: state})
			e.answer(allowAlways)
			require.Len(t, e.prompt("Run.", run("git grep needle")).asked, 1)
			require.Len(t, e.prompt("Run.", run("git status")).asked, 1)
			require.Empty(t, e.prompt("Run.", run("git grep -n needle a.txt"), run("git status -sb")).asked)

			// Earlier versions offered this.
			dir, err := workspace.ParseDir(root)
			require.NoError(t, err)
			require.NoError(t, consent.NewStore(state).Allow(consent.ForRule(dir, "run git commit ...", "")))
			e.answer(rejectOnce)
			for _, line := range []string{"git grep --open=sh needle", "git grep -Osh needle", "git commit -m x",
				"git grep --no-index needle /etc", "git grep needle -- /etc", "git status -- .."} {
				require.Len(t, e.prompt("Run.", run(line)).asked, 1, line)
			}
			require.NoFileExists(t, filepath.Join(root, "ran"))
		})
	}
}

// Commands that would open an editor or a pager, as a child and in a terminal of the client. The
// user's own editors and pagers would wait for a long time.
func TestCommandsWaitForNobody(t *testing.T) {
	needShell(t)
	needs.Programs(t, "git")
	const waits = "sleep 1000; #"
	home := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(home, ".gitconfig"), []byte(
		"[user]\nname = A\nemail = a@example.com\n[core]\neditor = "+`"`+waits+`"`+
			"\npager = "+`"`+waits+`"`+"\n[sequence]\neditor = "+`"`+waits+`"`+"\n"), 0o600))
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", home)
	for _, name := range []string{"EDITOR", "VISUAL", "PAGER", "GIT_EDITOR", "GIT_PAGER"} {
		t.Setenv(name, waits)
	}
	const advice = "Nobody can use an editor here"
	commands := []struct{ line, want, not string }{
		{"cd x && git commit --allow-empty", advice, "exit code 0"},
		{"cd x && git commit --amend", advice, "exit code 0"},
		{"cd x && git tag -a v1", advice, "exit code 0"},
		{"cd x && git rebase -i HEAD~1", advice, "exit code 0"},
		{`sh -c "$EDITOR file"`, advice, "exit code 0"},
		{`sh -c "$VISUAL file"`, advice, "exit code 0"},
		{"cd x && git log", "second\n", advice},
		{"cd x && git -p log --oneline", "[exit code 0]", advice},
		{"cd x && echo paged | sh -c $PAGER", "paged\n[exit code 0]", advice},
		{"cd x && git commit --allow-empty -m third", "[exit code 0]", advice},
		{"cd x && git commit --amend --no-edit --allow-empty", "[exit code 0]", advice},
		{"cd x && git -c core.editor=true commit --amend --allow-empty", advice, "exit code 0"},
		{"cd x && GIT_EDITOR=true git commit --amend --allow-empty", "[exit code 0]", advice},
		{"cd x && EDITOR=true git commit --amend --allow-empty", "[exit code 0]", advice},
		{"cd x && GIT_EDITOR=true git rebase -i HEAD~1", "[exit code 0]", advice},
		{"cd x && GIT_SEQUENCE_EDITOR=: git rebase -i HEAD~1", "[exit code 0]", advice},
		{`cd x && printf 'echo edited > "$1"' > "../e d" && GIT_EDITOR="sh '../e d'" ` +
			"git commit --amend --allow-empty && git log -1 --format=%s", "edited\n", advice},
	}
	if runtime.GOOS == "linux" { // where script(1) takes a command, in a terminal of its own
		if _, err := exec.LookPath("script"); err == nil {
			commands = append(commands, struct{ line, want, not string }{
				"cd x && script -qec 'git log --format=%s' /dev/null", "first\n[exit code 0]", advice})
		}
	}
	for name, offered := range map[string]requests{"child": nil, "terminal": offered(t)} {
		t.Run(name, func(t *testing.T) {
			root := dirtest.New(t, "x/file", "")
			git := func(args ...string) {
				out, err := exec.Command("git", append([]string{"-C", filepath.Join(root, "x")},
					args...)...).CombinedOutput()
				require.NoError(t, err, string(out))
			}
			git("init", "-q")
			git("commit", "-q", "--allow-empty", "-m", "first")
			git("add", "file")
			git("commit", "-q", "-m", "second")
			e := open(t, setup{roots: []string{root}, requests: offered})
			e.answer(allowOnce)
			for _, c := range commands {
				e.prompt("Run.", run(c.line, "timeout_seconds", 60))
				got := lastResult(e)
				require.Contains(t, got, c.want, c.line)
				require.NotContains(t, got, c.not, c.line)
				require.False(t, strings.Contains(got, "killed"), c.line)
			}
		})
	}
}
