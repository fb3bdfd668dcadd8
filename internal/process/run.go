package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"

	"github.com/acp-agent/acp-agent/internal/sandbox/hosts"
)

// Output runs a command without input and returns the beginning of what it printed, as [Exchange]
// does.
func Output(ctx context.Context, c Command) ([]byte, error) {
	const maxOutput = 64 << 10
	out, _, err := Exchange(ctx, c, nil, maxOutput)
	return out, err
}

// Exchange runs a command with input. It returns what it printed, at most a number of bytes, and
// the last lines of its stderr. It ends the command when ctx ends, but not a daemon that it has
// started, such as gpg-agent. If the command ends with a status other than 0, the error is an
// [*ExitError].
func Exchange(
	ctx context.Context, c Command, input []byte, most int64,
) (out []byte, stderr []string, err error) {
	c.keepsDaemons = true
	p, err := Start(ctx, c, Options{})
	if err != nil {
		return nil, nil, err
	}
	go func() {
		_, _ = p.Stdin().Write(input) // a command may ignore it
		_ = p.Stdin().Close()
	}()
	read := make(chan []byte, 1)
	go func() {
		defer p.Stdout().Close()
		out, _ := io.ReadAll(io.LimitReader(p.Stdout(), most))
		read <- out
	}()
	err = p.Wait(ctx)
	if err := p.Stop(ctx); err != nil {
		return nil, nil, err // it still runs, and may keep its output open
	}
	return <-read, p.Stderr(), err
}

// RunInTerminal runs a command that talks to the user. It stays in our process group, so that it
// can read from the terminal and receives the terminal's signals. When ctx ends it is interrupted.
// If it ends with a status other than 0, the error is an [*ExitError].
func RunInTerminal(ctx context.Context, c Command, in io.Reader, out, err io.Writer) error {
	refused := func(r hosts.Refusal) { _, _ = fmt.Fprintln(err, r) }
	cmd, network, startErr := start(ctx, c, stdio{in: in, out: out, err: err, refused: refused},
		nil)
	if startErr != nil {
		return startErr
	}
	defer network.close()
	waitErr := cmd.Wait()
	if _, ended := errors.AsType[*exec.ExitError](waitErr); ended {
		return newExitError(c.name(), cmd.ProcessState)
	}
	return waitErr
}
