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

	"github.com/acp-agent/acp-agent/internal/process"
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

// runChild runs the command as a child of this process and returns its output and how it ended. The
// command and everything that it has started end with the call.
func (c *modelCall) runChild(
	ctx context.Context, cmd shellCommand, env []string, timeout time.Duration,
) (string, error) {
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	var out clip
	p, err := c.startChild(ctx, cmd, env, func(r hosts.Refusal) { _, _ = fmt.Fprintf(&out, "[%v]\n", r) })
	if err != nil {
		return "", fmt.Errorf("the command was not run: %w", err)
	}
	var reading sync.WaitGroup
	reading.Go(func() {
		_, _ = io.Copy(&out, p.Stdout())
		_ = p.Stdout().Close()
	})
	err = c.showStatus(ctx, sdk.ToolCallStatusInProgress, nil)
	ended := ""
	if err == nil {
		ended, err = c.follow(ctx, p, &out, timeout)
	}
	if stopErr := p.Stop(ctx); stopErr != nil {
		ended = stopErr.Error()
		_ = p.Stdout().Close() // it may keep its output open
	}
	reading.Wait()
	if err != nil {
		return "", err
	}
	if ended == "" {
		ended = exitOf(p.Wait(ctx))
	}
	result := out.text(maxResult) + "[" + ended + "]"
	if err := c.showOutput(ctx, result); err != nil {
		return "", err
	}
	if ended != "exit code 0" {
		return "", errors.New(result)
	}
	return result, nil
}

// startChild starts the command without input, in the sandbox of the model if there is one.
func (c *modelCall) startChild(
	ctx context.Context, cmd shellCommand, env []string, refused func(hosts.Refusal),
) (*process.Process, error) {
	if err := c.turn.host.Workspace().HandOverDir(cmd.dir); err != nil {
		return nil, err
	}
	program, args := argv(cmd.line)
	command, err := process.Command{
		Path: program, Args: args, Dir: cmd.dir, Base: c.turn.backend.given.Environment,
		Env: env, Batch: true,
	}.Restrict(c.turn.sandbox())
	if err != nil {
		return nil, err
	}
	return process.Start(ctx, command, process.Options{Refused: refused})
}

// follow shows the output of a process until it ends, or returns why it must be ended.
func (c *modelCall) follow(
	ctx context.Context, p *process.Process, out *clip, timeout time.Duration,
) (ended string, err error) {
	limit := time.After(timeout)
	interval, shown := firstShown, 0
	show := time.NewTimer(interval)
	defer show.Stop()
	for {
		select {
		case <-p.Done():
			return "", nil
		case <-ctx.Done():
			return "", context.Cause(ctx)
		case <-limit:
			return fmt.Sprintf("killed, because it had not ended after %v", timeout), nil
		case <-show.C:
			if n := out.written(); n > shown {
				shown = n
				if err := c.showOutput(ctx, out.text(maxShown)); err != nil {
					return "", err
				}
				interval = min(interval*3/2, lastShown)
			}
			show.Reset(interval)
		}
	}
}

// exitOf says how a process ended, given the error of its Wait.
func exitOf(err error) string {
	exit, ok := errors.AsType[*process.ExitError](err)
	switch {
	case err == nil:
		return "exit code 0"
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
	content := []any{sdk.ToolContent(sdk.TextBlock(text.Block("", output)))}
	return c.showStatus(ctx, sdk.ToolCallStatusInProgress, content)
}

// clip keeps the beginning and the end of the output that is written to it, together as much as
// fits in a result.
type clip struct {
	mu         sync.Mutex
	head, tail []byte
	n          int // bytes written
}

const clippedHead, clippedTail = maxResult / 4, maxResult - maxResult/4

// Write implements [io.Writer]. It never fails.
func (c *clip) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := min(len(p), clippedHead-len(c.head))
	c.head = append(c.head, p[:first]...)
	c.tail = append(c.tail, p[first:]...)
	if len(c.tail) > 4*clippedTail {
		c.tail = append(c.tail[:0], c.tail[len(c.tail)-clippedTail:]...)
	}
	c.n += len(p)
	return len(p), nil
}

func (c *clip) written() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}

// text returns up to about most bytes of the output as text. Unless it is empty, it ends with a
// line break.
func (c *clip) text(most int) string {
	c.mu.Lock()
	head, tail, n := string(c.head), string(c.tail[max(0, len(c.tail)-clippedTail):]), c.n
	c.mu.Unlock()
	if n == len(head)+len(tail) {
		said := plainOutput(head + tail)
		if len(said) <= most {
			return said
		}
		head, tail = said, said
	} else {
		head, tail = plainOutput(head), plainOutput(tail)
	}
	tail = strings.ToValidUTF8(tail[max(0, len(tail)-(most-most/4)):], "")
	return fmt.Sprintf("%s\n[… truncated: the output has %s. To see the rest, let the command write "+
		"to a file in a folder of the session.]\n%s", text.Prefix(head, most/4), text.Size(n), tail)
}
