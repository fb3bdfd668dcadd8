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

// terminal is a [job] in a terminal of the client.
type terminal struct {
	client backend.Client
	id     string
}

// startTerminal starts a command in a terminal, and shows that.
func (c *modelCall) startTerminal(ctx context.Context, cmd shellCommand, env []string) (job, error) {
	creating, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(cleanUpTime, cancel) })()
	program, args := argv(cmd.line)
	params := backend.TerminalParams(program, args, env)
	params["cwd"], params["outputByteLimit"] = cmd.dir, maxResult
	var created struct{ TerminalID string }
	client := c.turn.host.For(backend.Sender{Decided: true})
	if err := callClient(creating, client, protocol.TerminalCreate, params, &created); err != nil {
		return nil, fmt.Errorf("the client cannot run the command: %w", err)
	}
	t := terminal{client, created.TerminalID}
	err := c.showStatus(ctx, sdk.ToolCallStatusInProgress, []any{sdk.ToolTerminalRef(t.id)})
	if err != nil {
		t.release(ctx)
	}
	return t, err
}

// request calls a method of the terminal and decodes its result, unless that is nil.
func (t terminal) request(ctx context.Context, method string, result any) error {
	params := map[string]string{"terminalId": t.id}
	return callClient(ctx, t.client, protocol.TerminalPrefix+method, params, result)
}

// release frees the terminal. It ignores the client's answer.
func (t terminal) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTime)
	defer cancel()
	_ = t.request(ctx, "release", nil)
}

func (t terminal) wait(ctx context.Context) (string, error) {
	var exit struct {
		ExitCode *int
		Signal   *string
	}
	err := t.request(ctx, "wait_for_exit", &exit)
	switch {
	case err != nil:
		return "", fmt.Errorf("the client has lost the command: %w", err)
	case exit.ExitCode != nil:
		return fmt.Sprintf("exit code %d", *exit.ExitCode), nil
	case exit.Signal != nil:
		return "ended by signal " + text.Printable(text.Truncate(*exit.Signal, 100)), nil
	default:
		return "ended, the client does not say how", nil
	}
}

func (t terminal) kill(ctx context.Context) error { return t.request(ctx, "kill", nil) }

// result implements [job]. It returns the end of the output.
func (t terminal) result(ctx context.Context, ended string) (string, error) {
	var out struct {
		Output    string
		Truncated bool
	}
	if err := t.request(ctx, "output", &out); err != nil {
		return "", fmt.Errorf(
			"the command has ended (%s), but the client does not return its output: %w", ended, err)
	}
	said := plainOutput(out.Output)
	if len(said) > maxResult {
		said, out.Truncated = strings.ToValidUTF8(said[len(said)-maxResult:], ""), true
	}
	if out.Truncated {
		said = "[… truncated: this is the end of the output. " +
			"To see the rest, let the command write to a file in a folder of the session.]\n" + said
	}
	return said + "[" + ended + "]", nil
}
