package process

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/acp-agent/acp-agent/internal/sandbox/hosts"
	"github.com/acp-agent/acp-agent/internal/text/secret"
)

// Options configure a child. The zero value is usable.
type Options struct {
	// Logger receives the lines of the child's stderr at level info, with the attributes child and
	// pid. Default: discard.
	Logger *slog.Logger
	// Secrets are replaced in the child's stderr, in the log and in errors. Nil means none.
	Secrets *secret.Scrubber
	// MaxLogLine is the longest line that is logged, in bytes; longer ones are truncated. Default 4
	// KiB, at least 16.
	MaxLogLine int
	// Refused is called for each host to which the child's sandbox does not let it connect, once.
	// Calls may overlap. Default: nothing.
	Refused func(hosts.Refusal)
	// Grace is how long Stop waits for the child to end after closing its stdin. Default 500 ms.
	Grace time.Duration

	// termGrace is the time between SIGTERM and SIGKILL. Default 500 ms; only tests change it.
	termGrace time.Duration
}

func (o Options) withDefaults() Options {
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	o.MaxLogLine = max(cmp.Or(o.MaxLogLine, 4<<10), 16)
	o.Grace = cmp.Or(o.Grace, 500*time.Millisecond)
	o.termGrace = cmp.Or(o.termGrace, 500*time.Millisecond)
	return o
}

// Process is a running child. Its methods are safe for concurrent use. The caller must end it with
// [Process.Stop] or wait for it to end by itself.
type Process struct {
	name    string
	pid     int
	options Options
	stdin   *os.File
	stdout  *output
	stderr  *stderrLog
	group   *group
	done    chan struct{}
	err     error // set before done is closed
}

// Start starts a command. ctx bounds only the start; the child lives until it ends or is stopped.
// If the command cannot be started the error is a [*StartError].
func Start(ctx context.Context, c Command, o Options) (*Process, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	o = o.withDefaults()
	pipes, err := newPipes()
	if err != nil {
		return nil, &StartError{Command: c, Err: err}
	}
	streams := stdio{in: pipes.child[0], out: pipes.child[1], err: pipes.child[2],
		refused: o.noteRefusals(c.name())}
	if c.Batch {
		streams.in, streams.err = nil, pipes.child[1]
		o.Grace = 0 // it does not notice the end of its input
	}
	cmd, group, err := startGroup(c, streams)
	closeAll(pipes.child)
	if err != nil {
		closeAll(pipes.ours)
		if errors.Is(err, exec.ErrNotFound) {
			o.Logger.Debug("cannot find a program", "program", c.Path, "PATH", os.Getenv("PATH"))
		}
		return nil, err
	}
	p := &Process{name: c.name(), pid: cmd.Process.Pid, options: o, stdin: pipes.ours[0],
		stdout: &output{file: pipes.ours[1]}, stderr: newStderrLog(o, c.name(), cmd.Process.Pid),
		group: group, done: make(chan struct{})}
	go p.await(cmd, &output{file: pipes.ours[2]})
	return p, nil
}

// await waits for the child, whose stderr it logs, and its group to end.
func (p *Process) await(cmd *exec.Cmd, stderr *output) {
	go p.stderr.readLines(stderr)
	go p.stderr.logLines()
	awaitEnd(cmd)
	p.group.end(p.options.termGrace)
	// The streams are our own pipes, so Wait waits only for the process. How it ended is in
	// ProcessState.
	_ = cmd.Wait()
	p.stdout.end()
	stderr.end()
	p.stderr.wait(p.options.Grace)
	_ = p.stdin.Close()
	if !cmd.ProcessState.Success() {
		p.err = newExitError(p.name, cmd.ProcessState, explanation(p.stderr.recent)...)
	}
	close(p.done)
}

// noteRefusals returns a function that logs a host to which the sandbox did not let a child connect.
func (o Options) noteRefusals(child string) func(hosts.Refusal) {
	return func(r hosts.Refusal) {
		o.Logger.Info("the sandbox refused a connection", "child", child, "host", r.Target,
			"address", r.Near)
		if o.Refused != nil {
			o.Refused(r)
		}
	}
}

// Name returns the child's name in the log.
func (p *Process) Name() string { return p.name }

// PID returns the child's process id.
func (p *Process) PID() int { return p.pid }

// Stdin returns the child's input. Closing it asks the child to end. It is closed when the child
// has ended.
func (p *Process) Stdin() io.WriteCloser { return p.stdin }

// Stdout returns the child's output, which ends with io.EOF after everything the child wrote. The
// caller must read it, or the child may block, and close it. Output that the child writes after
// that is discarded.
func (p *Process) Stdout() io.ReadCloser { return p.stdout }

// Done returns a channel that is closed once the child and its group have ended and its stderr has
// been logged.
func (p *Process) Done() <-chan struct{} { return p.done }

// Stderr returns the last lines of the child's stderr, without secrets. It waits for Done.
func (p *Process) Stderr() []string {
	<-p.done
	lines := make([]string, len(p.stderr.recent))
	for i, l := range p.stderr.recent {
		lines[i] = l.text
	}
	return lines
}

// Wait waits for Done. It returns nil if the child ended with status 0, an [*ExitError] if it ended
// otherwise, and the cause of ctx if that ended first.
func (p *Process) Wait(ctx context.Context) error {
	select {
	case <-p.done:
		return p.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Stop ends the child and its group and waits for them: it closes stdin, sends SIGTERM after a
// grace period, and SIGKILL after another. Once ctx has ended it does not wait before sending
// SIGKILL. [Process.Wait] reports how the child ended; Stop fails only if the child cannot be
// ended. It may be called at any time and more than once.
func (p *Process) Stop(ctx context.Context) error {
	// killWait is how long to wait after SIGKILL. Only a process that hangs in the kernel takes
	// that long.
	const killWait = time.Second
	_ = p.stdin.Close()
	if p.endsWithin(ctx, p.options.Grace) {
		return nil
	}
	p.group.terminate()
	if p.endsWithin(ctx, p.options.termGrace) {
		return nil
	}
	p.group.kill()
	if p.endsWithin(context.WithoutCancel(ctx), killWait+p.options.termGrace+p.options.Grace) {
		return nil
	}
	return fmt.Errorf("%s (process %d) did not end after being killed", p.name, p.pid)
}

func (p *Process) endsWithin(ctx context.Context, grace time.Duration) bool {
	select {
	case <-p.done:
		return true
	case <-ctx.Done():
	case <-time.After(grace):
	}
	return false
}

// ExitError is returned for a child that ended with a status other than 0.
type ExitError struct {
	// Name is the child's name in the log.
	Name string
	// Code is the exit status, -1 if a signal ended the child.
	Code int
	// Status is the status that a shell reports: Code, or 128 and the number of the signal.
	Status int
	// State describes how the child ended: "exit status 1", "signal: killed".
	State string
	// Stderr are the lines of the child's stderr that explain why it ended, at most five.
	Stderr []string
}

func newExitError(name string, state *os.ProcessState, stderr ...string) *ExitError {
	return &ExitError{Name: name, Code: state.ExitCode(), Status: shellStatus(state),
		State: state.String(), Stderr: stderr}
}

func (e *ExitError) Error() string {
	text := fmt.Sprintf("%s ended: %s", e.Name, e.State)
	// Shells and env(1) report a missing program with this status.
	const notFound = 127
	if e.Code == notFound {
		text += " (usually a program that it needs is not in PATH, " +
			"which is short in editors started from a desktop)"
	}
	if len(e.Stderr) > 0 {
		text += ": " + strings.Join(e.Stderr, "\n")
	}
	return text
}

// IsVariable reports whether name is a name that every system and shell accepts for an environment
// variable.
func IsVariable(name string) bool {
	for i, r := range name {
		letter := r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return name != ""
}
