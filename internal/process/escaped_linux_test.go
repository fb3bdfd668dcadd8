package process_test

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/needs"
	"github.com/acp-agent/acp-agent/internal/test/proctest"
)

// escapes are scripts of children whose descendant, $0, leaves the group or does not end with its
// input.
func escapes() map[string]string {
	return map[string]string{
		"background":            `"$0" & read end`,
		"beside a zombie":       `"$0" & sh -c ": & exec sleep 1000" & read end`,
		"nohup":                 `nohup "$0" & read end`,
		"double fork":           `("$0" &) & read end`,
		"setsid":                `setsid "$0" & read end`,
		"setsid, double fork":   `(setsid sh -c '"$0" & exit' "$0" </dev/null >&2 &); read end`,
		"setsid below a setsid": `setsid sh -c 'setsid "$0" & wait' "$0" & read end`,
	}
}

// Clause W9.
func TestEscapedProcessesEnd(t *testing.T) {
	needs.Programs(t, "setsid")
	const grace = 50 * time.Millisecond
	ways := map[string]func(*testing.T, *process.Process){
		"stopped": func(t *testing.T, p *process.Process) { require.NoError(t, p.Stop(bounded(t))) },
		"by itself": func(t *testing.T, p *process.Process) {
			_, err := io.WriteString(p.Stdin(), "end\n")
			require.NoError(t, err)
			require.NoError(t, p.Wait(bounded(t)), "the child's own status")
		},
		"killed": func(t *testing.T, p *process.Process) {
			require.NoError(t, syscall.Kill(p.PID(), syscall.SIGKILL))
			require.Error(t, p.Wait(bounded(t)))
		},
	}
	for name, script := range escapes() {
		for way, end := range ways {
			for _, role := range []string{"hold", "hold on"} {
				t.Run(name+"/"+way+"/"+role, func(t *testing.T) {
					t.Parallel()
					h, mark := proctest.Watch(t), proctest.NewMark(t)
					p := start(t, shell(script, role, h.Env(), mark.Env()),
						process.Options{Grace: grace}.WithTermGrace(grace))
					descendant := h.Next()
					end(t, p)
					descendant.Ended()
					require.Empty(t, mark.Processes())
				})
			}
		}
	}
}

// While a process replaces its program, it has no environment by which it could be recognized.
//
// Clause W9.
func TestDescendantsThatStartAgainEnd(t *testing.T) {
	needs.Programs(t, "setsid")
	const again = `exec sh -c "$1" sh "$1"`
	for range 20 {
		mark := proctest.NewMark(t)
		p := start(t, process.Command{Path: "sh", Args: []string{"-c",
			`setsid sh -c "$1" sh "$1" & read end`, "sh", again}, Env: append(os.Environ(), mark.Env())},
			process.Options{Grace: 1}.WithTermGrace(patience))
		require.Eventually(t, func() bool { return len(mark.Processes()) > 1 }, patience, time.Millisecond)
		require.NoError(t, p.Stop(bounded(t)))
		for range 10 { // it may replace its program
			require.Empty(t, mark.Processes())
		}
	}
}

// Only descendants are ended, whatever else runs with the same program and environment.
//
// Clause W9.
func TestOtherProcessesLiveOn(t *testing.T) {
	needs.Programs(t, "setsid")
	h := proctest.Watch(t)
	sibling := start(t, shell(`setsid "$0" & read end`, "hold", h.Env()), process.Options{})
	h.Next()
	mark := proctest.NewMark(t)
	stranger := exec.Command(proctest.Executable())
	stranger.Env = append(os.Environ(), proctest.Env("hold", h.Env(), mark.Env())...)
	require.NoError(t, stranger.Start())
	t.Cleanup(func() {
		_ = stranger.Process.Kill()
		_ = stranger.Wait()
	})
	h.Next()
	p := start(t, shell(`setsid "$0" & read end`, "hold", h.Env(), mark.Env()), process.Options{})
	descendant := h.Next()
	require.NoError(t, p.Stop(bounded(t)))
	descendant.Ended()
	require.Equal(t, []int{stranger.Process.Pid}, mark.Processes())
	select {
	case <-sibling.Done():
		require.Fail(t, "it lives")
	default:
	}
}

// Descendants in the group end even if they ignore the end of their input. Those that left it
// cannot be reached any more.
//
// Clause W9.
func TestGroupIsKilledWithOurProcess(t *testing.T) {
	scripts := escapes()
	for name := range scripts {
		if strings.Contains(name, "setsid") {
			delete(scripts, name)
		}
	}
	// As a child on Node.js does, which hands on only what it is told to.
	scripts["not inherited"] = `"$0" 3>&- & read end`
	for name, script := range scripts {
		t.Run(name, func(t *testing.T) {
			for range 20 {
				h := proctest.Watch(t)
				us := exec.Command(proctest.Executable())
				us.Env = append(os.Environ(),
					proctest.Env("supervise", h.Env(), childScript+"="+script)...)
				output, err := us.StdoutPipe()
				require.NoError(t, err)
				require.NoError(t, us.Start())
				descendant := h.Next()
				awaitStarted(t, output)
				require.NoError(t, us.Process.Kill())
				require.Error(t, us.Wait())
				descendant.Ended()
			}
		})
	}
}

// The id of the child, which is that of its group, is not reused while the group may be signalled.
//
// Clause W9.
func TestChildIsReapedAfterItsGroup(t *testing.T) {
	needs.Programs(t, "setsid")
	pidFile := filepath.Join(t.TempDir(), "pid")
	p := start(t, process.Command{Path: "sh", Args: []string{"-c",
		`setsid sh -c 'trap "" TERM; echo $$ > "$0.new"; mv "$0.new" "$0"; sleep 60' "$0" &
while ! test -e "$0"; do sleep 0.01; done`, pidFile}}, process.Options{}.WithTermGrace(patience))
	stat := filepath.Join("/proc", strconv.Itoa(p.PID()), "stat")
	require.Eventually(t, func() bool {
		text, _ := os.ReadFile(stat)
		return strings.Contains(string(text), ") Z ")
	}, patience, time.Millisecond, "it was reaped while others of its family lived")
	id, err := strconv.Atoi(strings.TrimSpace(dirtest.Read(t, pidFile)))
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(-id, syscall.SIGKILL))
	require.NoError(t, p.Wait(bounded(t)))
	require.NoFileExists(t, stat)
}

// A command that prints a key may have started an agent that keeps it.
func TestOutputKeepsDaemons(t *testing.T) {
	needs.Programs(t, "setsid")
	pidFile := filepath.Join(t.TempDir(), "pid")
	out, err := process.Output(t.Context(), process.Command{Path: "/bin/sh", Args: []string{"-c",
		`setsid sh -c 'echo $$ > "$0.new"; mv "$0.new" "$0"; exec sleep 60' "$0" </dev/null >/dev/null 2>&1 &
while ! test -e "$0"; do sleep 0.01; done; echo key`, pidFile}})
	require.NoError(t, err)
	require.Equal(t, "key\n", string(out))
	id, err := strconv.Atoi(strings.TrimSpace(dirtest.Read(t, pidFile)))
	require.NoError(t, err)
	defer func() { _ = syscall.Kill(id, syscall.SIGKILL) }()
	require.NoError(t, syscall.Kill(id, 0), "it lives on")
}
