package bench

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/acp-agent/acp-agent/internal/test/interop/program"
	"github.com/acp-agent/acp-agent/internal/test/interop/scripted"
)

// role is set when the test binary serves as the agent behind the program.
const role = "ACP_AGENT_BENCH_ROLE"

func TestMain(m *testing.M) {
	if os.Getenv(role) == "scripted" {
		serve := scripted.Serve
		if os.Args[len(os.Args)-1] == native {
			serve = serveNative
		}
		if err := serve(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// build builds a program as it is released.
func build(b *testing.B, pkg string) string {
	b.Helper()
	dir := b.TempDir()
	out, err := exec.CommandContext(b.Context(), "make", "-C", "../../..", "build", "PROGRAM=./"+pkg, "OUT="+dir+"/").CombinedOutput()
	if err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	return filepath.Join(dir, path.Base(pkg))
}

func check(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// agent is a process of the program.
type agent struct {
	*program.Process
	b *testing.B
}

// start builds and starts the program; it is stopped when the benchmark ends.
func start(b *testing.B, args ...string) *agent {
	b.Helper()
	a := run(b, append([]string{build(b, "cmd/acp-agent")}, args...))
	b.Cleanup(a.leave)
	return a
}

// run starts a program with a state directory of its own.
func run(b *testing.B, command []string) *agent {
	b.Helper()
	return runIn(b, filepath.Join(b.TempDir(), "state"), command)
}

// runIn starts a program with a given state directory.
func runIn(b *testing.B, state string, command []string) *agent {
	b.Helper()
	command = slices.Insert(command, 1, "--state-dir", state)
	p, err := program.Start(program.Options{Command: command, Env: []string{role + "=scripted"}, Stderr: os.Stderr})
	check(b, err)
	a := &agent{Process: p, b: b}
	a.call("initialize", map[string]any{"protocolVersion": 1}, new(struct{}))
	return a
}

// leave ends the program as a client does.
func (a *agent) leave() {
	a.b.Helper()
	check(a.b, a.CloseInput())
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_, err := a.Wait(ctx)
	check(a.b, err)
}

func (a *agent) call(method string, params, result any) {
	a.b.Helper()
	m, err := a.Call(a.b.Context(), method, params)
	check(a.b, err)
	check(a.b, m.Decode(result))
}

// open makes a session and returns its id.
func (a *agent) open(cwd string, additional ...string) string {
	a.b.Helper()
	var result struct{ SessionID string }
	a.call("session/new", map[string]any{"cwd": cwd, "additionalDirectories": append([]string{}, additional...), "mcpServers": []any{}}, &result)
	return result.SessionID
}

// quantile returns the smallest value that is at least as large as the share q of the values.
func quantile[T cmp.Ordered](values []T, q float64) T {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

// report reports a quantile of durations in milliseconds.
func report(b *testing.B, name string, durations []time.Duration, q float64) {
	b.Helper()
	b.ReportMetric(float64(quantile(durations, q).Microseconds())/1000, name)
}
