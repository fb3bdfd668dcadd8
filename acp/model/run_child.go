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

// child is a [job] that is a child of this process. The command and everything that it has started
// end with the call.
type child struct {
	call    *modelCall
	process *process.Process
	out     clip
	reading sync.WaitGroup
}

// startChild starts a command without input, in the sandbox of the model if there is one.
func (c *modelCall) startChild(ctx context.Context, cmd shellCommand, env []string) (job, error) {
	err := c.turn.host.Workspace().HandOverDir(cmd.dir)
	program, args := argv(cmd.line)
	command := process.Command{
		Path: program, Args: args, Dir: cmd.dir, Base: c.turn.backend.given.Environment,
		Env: env, Batch: true,
	}
	j := &child{call: c}
	if err == nil {
		command, err = command.Restrict(c.turn.sandbox())
	}
	if err == nil {
		j.process, err = process.Start(ctx, command, process.Options{Refused: func(r hosts.Refusal) {
			_, _ = fmt.Fprintf(&j.out, "[%v]\n", r)
		}})
	}
	if err != nil {
		return nil, fmt.Errorf("the command was not run: %w", err)
	}
	j.reading.Go(func() {
		_, _ = io.Copy(&j.out, j.process.Stdout())
		_ = j.process.Stdout().Close()
	})
	if err := c.showStatus(ctx, sdk.ToolCallStatusInProgress, nil); err != nil {
		j.release(ctx)
		return nil, err
	}
	return j, nil
}

// wait implements [job]. It shows the output meanwhile.
func (j *child) wait(ctx context.Context) (string, error) {
	interval, shown := firstShown, ""
	show := time.NewTimer(interval)
	defer show.Stop()
	for {
		select {
		case <-j.process.Done():
			return exitOf(j.process.Wait(ctx)), nil
		case <-ctx.Done():
			return "", context.Cause(ctx)
		case <-show.C:
			if printed := j.out.text(maxShown); printed != shown {
				shown = printed
				if err := j.call.showOutput(ctx, printed); err != nil {
					return "", err
				}
				interval = min(interval*3/2, lastShown)
			}
			show.Reset(interval)
		}
	}
}

func (j *child) kill(ctx context.Context) error {
	err := j.process.Stop(ctx)
	if err != nil {
		_ = j.process.Stdout().Close() // it may keep its output open
	}
	j.reading.Wait()
	return err
}

func (j *child) release(ctx context.Context) { _ = j.kill(ctx) }

// result implements [job]. It shows the result too.
func (j *child) result(ctx context.Context, ended string) (string, error) {
	j.reading.Wait()
	result := j.out.text(maxResult) + "[" + ended + "]"
	return result, j.call.showOutput(ctx, result)
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
