package model

import (
	"context"
	"fmt"
	"strings"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
)

// cleanUpTime is how long a terminal may take to be created or released after the turn was
// cancelled.
const cleanUpTime = 2 * time.Second

// runTerminal runs a command in a terminal of the client, and shows that. It returns the end of
// what was printed, and how the command ended.
func (c *modelCall) runTerminal(
	ctx context.Context, cmd shellCommand, env []string, timeout time.Duration,
) (printed, ended string, err error) {
	t, err := c.createTerminal(ctx, cmd, env)
	if err != nil {
		return "", "", fmt.Errorf("the client cannot run the command: %w", err)
	}
	defer t.release(ctx)
	err = c.showStatus(ctx, sdk.ToolCallStatusInProgress, []any{sdk.ToolTerminalRef(t.id)})
	if err != nil {
		return "", "", err
	}
	waiting, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	ended, err = t.wait(waiting)
	switch {
	case ctx.Err() != nil:
		return "", "", context.Cause(ctx)
	case waiting.Err() != nil:
		ended, err = killedAfter(timeout), t.request(ctx, "kill", nil)
	}
	if err != nil {
		return "", "", err
	}
	printed, err = t.output(ctx)
	if err != nil {
		err = fmt.Errorf("the command has ended (%s), but the client does not return its output: %w",
			ended, err)
	}
	return printed, ended, err
}

// terminal is a terminal of the client.
type terminal struct {
	client backend.Client
	id     string
}

// createTerminal creates a terminal in which a command runs. If ctx ends meanwhile, the client has
// a moment to answer, so that the terminal can be released.
func (c *modelCall) createTerminal(
	ctx context.Context, cmd shellCommand, env []string,
) (terminal, error) {
	creating, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(cleanUpTime, cancel) })()
	program, args := argv(cmd.line)
	params := backend.TerminalParams(program, args, env)
	params["cwd"], params["outputByteLimit"] = cmd.dir, maxResult
	var created struct{ TerminalID string }
	client := c.turn.host.For(backend.Sender{Decided: true})
	err := callClient(creating, client, protocol.TerminalCreate, params, &created)
	return terminal{client, created.TerminalID}, err
}

// request calls a method of the terminal and decodes its result, unless that is nil.
func (t terminal) request(ctx context.Context, method string, result any) error {
	params := map[string]string{"terminalId": t.id}
	return callClient(ctx, t.client, protocol.TerminalPrefix+method, params, result)
}

// release frees the terminal, even if ctx has ended. It ignores the client's answer.
func (t terminal) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTime)
	defer cancel()
	_ = t.request(ctx, "release", nil)
}

// wait returns how the command has ended.
func (t terminal) wait(ctx context.Context) (ended string, err error) {
	var exit struct {
		ExitCode *int
		Signal   *string
	}
	err = t.request(ctx, "wait_for_exit", &exit)
	switch {
	case err != nil:
		return "", fmt.Errorf("the client has lost the command: %w", err)
	case exit.ExitCode != nil:
		return fmt.Sprintf("exit code %d", *exit.ExitCode), nil
	case exit.Signal != nil:
		return "ended by signal " + text.Printable(text.Truncate(*exit.Signal, 100)), nil
	}
	return "ended, the client does not say how", nil
}

// output returns the end of what the command has printed.
func (t terminal) output(ctx context.Context) (string, error) {
	var out struct {
		Output    string
		Truncated bool
	}
	if err := t.request(ctx, "output", &out); err != nil {
		return "", err
	}
	said := plainOutput(out.Output)
	if len(said) > maxResult {
		said, out.Truncated = strings.ToValidUTF8(said[len(said)-maxResult:], ""), true
	}
	if out.Truncated {
		said = "[… truncated: this is the end of the output. " +
			"To see the rest, let the command write to a file in a folder of the session.]\n" + said
	}
	return said, nil
}
