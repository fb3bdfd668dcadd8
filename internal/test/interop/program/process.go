package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/acp-agent/acp-agent/internal/conform/rawrpc"
)

// Options say what to start.
type Options struct {
	// Command is the program and its arguments.
	Command []string
	// Env is added to the environment of the caller, as "NAME=value".
	Env []string
	// Dir is the working directory; "" means that of the caller.
	Dir string
	// Stderr receives the standard error. If it is nil, it is discarded.
	Stderr io.Writer
}

// Process is a running agent. Its methods are safe for concurrent use.
type Process struct {
	*rawrpc.Conn
	cmd *exec.Cmd
	in  io.WriteCloser

	exited chan struct{}
	exit   error // set before exited is closed
}

// Start starts an agent. The caller must wait for it or kill it.
func Start(o Options) (*Process, error) {
	cmd := exec.Command(o.Command[0], o.Command[1:]...)
	cmd.Env = append(os.Environ(), o.Env...)
	cmd.Dir = o.Dir
	cmd.Stderr = o.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &Process{Conn: rawrpc.New(out, in, 0), cmd: cmd, in: in, exited: make(chan struct{})}
	go func() {
		<-p.Done()
		p.exit = cmd.Wait()
		close(p.exited)
	}()
	return p, nil
}

// PID returns the process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// CloseInput closes the agent's input, as a client does to end the agent.
func (p *Process) CloseInput() error { return p.in.Close() }

// Signal sends a signal.
func (p *Process) Signal(s os.Signal) error { return p.cmd.Process.Signal(s) }

// Kill kills the process.
func (p *Process) Kill() error { return p.cmd.Process.Kill() }

// Wait waits for the end of the agent's output and of the process, and returns the exit code, -1 if
// a signal ended it.
func (p *Process) Wait(ctx context.Context) (code int, err error) {
	select {
	case <-p.exited:
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
	var exit *exec.ExitError
	if p.exit != nil && !errors.As(p.exit, &exit) {
		return 0, p.exit
	}
	return p.cmd.ProcessState.ExitCode(), nil
}

// Compile compiles a main package into dir and returns the path of the program. pkg is an import
// path, and args are flags of go build.
func Compile(ctx context.Context, dir, pkg string, args ...string) (string, error) {
	name := filepath.Base(pkg)
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	program := filepath.Join(dir, name)
	args = append(append([]string{"build", "-o", program}, args...), pkg)
	if out, err := exec.CommandContext(ctx, "go", args...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s: %w\n%s", pkg, err, out)
	}
	return program, nil
}
