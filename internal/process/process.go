package process

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/acp-agent/acp-agent/internal/secret"
)

// Command is a program to start.
type Command struct {
	// Path is the program. A name without a separator is looked up in our own PATH, not in that of
	// Env. A relative path is relative to Dir.
	Path string
	// Args are the arguments after the program's name.
	Args []string
	// Env is added to Base as NAME=VALUE. The last value of a name wins.
	Env []string
	// Base is our environment if it is nil.
	Base []string
	// Dir is the working directory, "" for ours.
	Dir string
	// Name is the child's name in the log and in errors. Default: the base name of Path.
	Name string
}

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
	cmd, err := c.prepare()
	if errors.Is(err, exec.ErrNotFound) {
		o.Logger.Debug("cannot find a program", "program", c.Path, "PATH", os.Getenv("PATH"))
	}
	if err != nil {
		return nil, err
	}
	pipes, err := newPipes()
	if err != nil {
		return nil, &StartError{Command: c, Err: err}
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = pipes.stdin.read, pipes.stdout.write, pipes.stderr.write
	p := &Process{
		name:    cmp.Or(c.Name, filepath.Base(c.Path)),
		options: o,
		stdin:   pipes.stdin.write,
		stdout:  &output{file: pipes.stdout.read},
		done:    make(chan struct{}),
	}
	started := make(chan error)
	go p.run(cmd, &output{file: pipes.stderr.read}, started)
	err = <-started
	pipes.closeChildEnds()
	if err != nil {
		pipes.closeOurEnds()
		return nil, &StartError{Command: c, Hint: c.startHint(err), Err: err}
	}
	return p, nil
}

// run starts the child and waits for it and its group to end.
func (p *Process) run(cmd *exec.Cmd, stderr *output, started chan<- error) {
	// On Linux the kernel kills the child when the thread that started it ends, so this goroutine
	// keeps its thread.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	group, err := startGroup(cmd)
	if err != nil {
		started <- err
		return
	}
	p.group, p.pid = group, cmd.Process.Pid
	p.stderr = newStderrLog(p.options, p.name, p.pid)
	p.stderr.start(stderr)
	started <- nil

	// The streams are our own pipes, so Wait waits only for the process. How it ended is in
	// ProcessState.
	_ = cmd.Wait()
	p.group.end(p.options.termGrace)
	p.stdout.end()
	stderr.end()
	p.stderr.wait(p.options.Grace)
	_ = p.stdin.Close()
	if !cmd.ProcessState.Success() {
		p.err = &ExitError{
			Name:   p.name,
			Code:   cmd.ProcessState.ExitCode(),
			State:  cmd.ProcessState.String(),
			Stderr: explanation(p.stderr.recent),
		}
	}
	close(p.done)
}

// Name returns the child's name in the log.
func (p *Process) Name() string { return p.name }

// PID returns the child's process id.
func (p *Process) PID() int { return p.pid }

// Stdin returns the child's input. Closing it asks the child to end. It is closed when the child
// has ended.
func (p *Process) Stdin() io.WriteCloser { return p.stdin }

// Stdout returns the child's output, which ends with io.EOF after everything the child wrote. The
// caller must read it, or the child may block, and close it. What the child writes after that is
// discarded.
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
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.done:
		return true
	case <-ctx.Done():
	case <-timer.C:
	}
	return false
}

// prepare returns the exec.Cmd for c, or a *StartError.
func (c Command) prepare() (*exec.Cmd, error) {
	if c.Path == "" {
		return nil, &StartError{Command: c, Err: errors.New("no command given")}
	}
	if c.Dir != "" {
		if _, err := os.Stat(c.Dir); err != nil {
			return nil, &StartError{Command: c, Hint: "its working directory cannot be used", Err: err}
		}
	}
	cmd := exec.Command(c.Path, c.Args...)
	if cmd.Err != nil {
		return nil, &StartError{Command: c, Hint: c.notFoundHint(), Err: cmd.Err}
	}
	base := c.Base
	if base == nil {
		base = os.Environ()
	}
	cmd.Env = slices.Concat(base, c.Env)
	cmd.Dir = c.Dir
	return cmd, nil
}

func (c Command) notFoundHint() string {
	if strings.ContainsRune(c.Path, filepath.Separator) {
		return "check that the path exists and is executable"
	}
	return "if it is installed, use its absolute path"
}

// startHint explains an error of the operating system for a program that was found.
func (c Command) startHint(err error) string {
	switch {
	case errors.Is(err, fs.ErrPermission):
		return "the file is not executable"
	case !errors.Is(err, fs.ErrNotExist):
		return ""
	}
	path := c.Path
	if !filepath.IsAbs(path) {
		path = filepath.Join(c.Dir, path)
	}
	if _, statErr := os.Stat(path); statErr == nil {
		return "the file exists, but the interpreter named in its first line does not"
	}
	return c.notFoundHint()
}

// StartError is returned for a command that could not be started. Its text says what to do.
type StartError struct {
	Command Command
	// Hint says what to check, or is "".
	Hint string
	// Err is the cause; exec.ErrNotFound if the program was not found in PATH.
	Err error
}

func (e *StartError) Error() string {
	text := fmt.Sprintf("cannot start %q: %v", e.Command.Path, e.Err)
	var search *exec.Error
	if errors.As(e.Err, &search) {
		text = fmt.Sprintf("cannot start %q: %v", e.Command.Path, search.Err)
	}
	if e.Hint != "" {
		text += " (" + e.Hint + ")"
	}
	return text
}

// Unwrap returns the cause.
func (e *StartError) Unwrap() error { return e.Err }

// ExitError is returned for a child that ended with a status other than 0.
type ExitError struct {
	// Name is the child's name in the log.
	Name string
	// Code is the exit status, -1 if a signal ended the child.
	Code int
	// State describes how the child ended: "exit status 1", "signal: killed".
	State string
	// Stderr are the lines of the child's stderr that explain why it ended, at most five.
	Stderr []string
}

func (e *ExitError) Error() string {
	text := fmt.Sprintf("%s ended: %s", e.Name, e.State)
	// Shells and env(1) report a missing program with this status.
	const notFound = 127
	if e.Code == notFound {
		text += " (usually a program that it needs is not in PATH, which is short in editors started from a desktop)"
	}
	if len(e.Stderr) > 0 {
		text += ": " + strings.Join(e.Stderr, "\n")
	}
	return text
}
