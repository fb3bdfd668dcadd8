package process

import (
	"context"
	"io"
	"os"
	"os/exec"
	"runtime"
)

// Process is a child that was started. Its methods are safe for concurrent use. Whoever
// started it must see to its end with [Process.Stop], or wait for it to end by itself.
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

// Start starts a command. ctx is for the start alone: one that has ended starts nothing; the
// child lives until it ends or is stopped. A command that cannot be started is a [*StartError].
func Start(ctx context.Context, c Command, o Options) (*Process, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	cmd, err := c.prepare()
	if err != nil {
		return nil, err
	}
	pipes, err := newPipes()
	if err != nil {
		return nil, &StartError{Command: c, Err: err}
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = pipes.stdin.read, pipes.stdout.write, pipes.stderr.write
	p := &Process{
		name:    c.name(),
		options: o.withDefaults(),
		stdin:   pipes.stdin.write,
		stdout:  &output{file: pipes.stdout.read},
		done:    make(chan struct{}),
	}
	started := make(chan error)
	go p.run(cmd, &output{file: pipes.stderr.read}, started)
	err = <-started
	pipes.closeTheirs()
	if err != nil {
		pipes.closeOurs()
		return nil, &StartError{Command: c, Hint: c.startHint(err), Err: err}
	}
	return p, nil
}

// run is the child's life from start to end.
func (p *Process) run(cmd *exec.Cmd, stderr *output, started chan<- error) {
	// On Linux the kernel kills the child when the thread that started it ends, so this
	// goroutine keeps its thread until the child has ended.
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

	// The streams are files of our own, so Wait waits for the process alone. How it ended is in its state.
	_ = cmd.Wait()
	p.group.end(p.options.TermGrace)
	p.stdout.end()
	stderr.end()
	p.stderr.wait(p.options.Grace)
	_ = p.stdin.Close()
	if !cmd.ProcessState.Success() {
		p.err = &ExitError{
			Name:     p.name,
			Code:     cmd.ProcessState.ExitCode(),
			State:    cmd.ProcessState.String(),
			LastLine: p.stderr.lastLine(),
		}
	}
	close(p.done)
}

// Name is the child's name, as in the log.
func (p *Process) Name() string { return p.name }

// PID is the direct child's process id.
func (p *Process) PID() int { return p.pid }

// Stdin goes to the child. Closing it tells the child to end; it is closed when the child has ended.
func (p *Process) Stdin() io.WriteCloser { return p.stdin }

// Stdout comes from the child: everything it wrote, then io.EOF. The caller reads it, else the
// child may wait for that, and closes it; what the child writes after that is discarded.
func (p *Process) Stdout() io.ReadCloser { return p.stdout }

// Done is closed when the child and its group have ended and its stderr was logged.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait waits for Done and says how the child ended: nil for status 0, else an [*ExitError]. If
// ctx ends first it returns its cause.
func (p *Process) Wait(ctx context.Context) error {
	select {
	case <-p.done:
		return p.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
