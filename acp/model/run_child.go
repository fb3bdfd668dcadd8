package model

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/internal/sandbox"
	"github.com/acp-agent/acp-agent/internal/sandbox/confine"
	"github.com/acp-agent/acp-agent/internal/sandbox/hosts"
	"github.com/acp-agent/acp-agent/internal/text"
)

const (
	// firstShown and lastShown are the shortest and the longest time between two updates with the
	// output of a command. The time grows because each update is stored.
	firstShown, lastShown = 200 * time.Millisecond, 10 * time.Second
	// maxShown bounds the output in such an update, in bytes.
	maxShown = 4 << 10
)

// runChild runs a command without input as a child of this process, in the sandbox of the model if
// there is one, and shows its output meanwhile. The command and everything that it has started end
// with the call. runChild returns what was printed, and how the command ended.
func (c *modelCall) runChild(
	ctx context.Context, cmd shellCommand, env []string, timeout time.Duration,
) (printed, ended string, err error) {
	var out clip
	child, err := c.startChild(ctx, cmd, env, &out)
	if err != nil {
		return "", "", fmt.Errorf("the command was not run: %w", err)
	}
	var reading sync.WaitGroup
	reading.Go(func() {
		_, _ = io.Copy(&out, child.Stdout())
		_ = child.Stdout().Close()
	})
	kill := func() error {
		err := child.Stop(ctx)
		if err != nil {
			_ = child.Stdout().Close() // it may keep its output open
		}
		reading.Wait()
		return err
	}
	defer func() { _ = kill() }()
	if err := c.showStatus(ctx, sdk.ToolCallStatusInProgress, nil); err != nil {
		return "", "", err
	}
	late, interval, shown := time.After(timeout), firstShown, ""
	for show := time.After(interval); ended == ""; {
		select {
		case <-child.Done():
			ended = exitOf(child.Wait(ctx))
			reading.Wait()
		case <-late:
			ended, err = killedAfter(timeout), kill()
		case <-ctx.Done():
			err = context.Cause(ctx)
		case <-show:
			if printed = out.text(maxShown); printed != shown {
				shown, interval = printed, min(interval*3/2, lastShown)
				err = c.showOutput(ctx, printed)
			}
			show = time.After(interval)
		}
		if err != nil {
			return "", "", err
		}
	}
	return out.text(maxResult), ended, nil
}

// startChild starts a command that prints to out.
func (c *modelCall) startChild(
	ctx context.Context, cmd shellCommand, env []string, out *clip,
) (*process.Process, error) {
	if err := c.turn.host.Workspace().HandOverDir(cmd.dir); err != nil {
		return nil, err
	}
	program, args := argv(cmd.line)
	restrictions, roots := c.turn.sandbox()
	if c.turn.backend.given.OnlyInSandbox && restrictions.Mode == sandbox.Off {
		return nil, errors.New("the model that the user has chosen has no sandbox")
	}
	command, err := confine.Command(process.Command{
		Path: program, Args: args, Dir: cmd.dir, Base: c.turn.backend.given.Environment,
		Env: env, Batch: true,
	}, restrictions, roots)
	if err != nil {
		return nil, err
	}
	return process.Start(ctx, command, process.Options{Refused: func(r hosts.Refusal) {
		_, _ = fmt.Fprintf(out, "[%v]\n", r)
	}})
}

// exitOf says how a process ended, given the error of its Wait.
func exitOf(err error) string {
	exit, ok := errors.AsType[*process.ExitError](err)
	switch {
	case err == nil:
		return succeeded
	case ok && exit.Code >= 0:
		return fmt.Sprintf("exit code %d", exit.Code)
	case ok:
		return "ended by " + exit.State
	default:
		return err.Error()
	}
}

// showOutput shows the output of a command so far.
func (c *modelCall) showOutput(ctx context.Context, output string) error {
	content := backend.TextContent(text.Block("", output))
	return c.showStatus(ctx, sdk.ToolCallStatusInProgress, content)
}

// clip keeps the beginning and the end of the output that is written to it, together as much as
// fits in a result.
type clip struct {
	mu   sync.Mutex
	kept []byte // the beginning, and of what follows at least the end
	n    int    // bytes written
}

const clippedHead, clippedTail = maxResult / 4, maxResult - maxResult/4

// Write implements [io.Writer]. It never fails.
func (c *clip) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept = append(c.kept, p...); len(c.kept) > 4*maxResult {
		c.kept = append(c.kept[:clippedHead], c.kept[len(c.kept)-clippedTail:]...)
	}
	c.n += len(p)
	return len(p), nil
}

// text returns up to about most bytes of the output as text. Unless it is empty, it ends with a
// line break.
func (c *clip) text(most int) string {
	c.mu.Lock()
	kept, n := string(c.kept), c.n
	c.mu.Unlock()
	head := plainOutput(kept[:min(len(kept), clippedHead)])
	tail := plainOutput(kept[max(0, len(kept)-clippedTail):])
	if n == len(kept) {
		if head = plainOutput(kept); len(head) <= most {
			return head
		}
	}
	tail = strings.ToValidUTF8(tail[max(0, len(tail)-(most-most/4)):], "")
	return fmt.Sprintf("%s\n[… truncated: the output has %s. To see the rest, let the command write "+
		"to a file in a folder of the session.]\n%s", text.Prefix(head, most/4), text.Size(n), tail)
}
