// Package terminals runs commands for agents as an editor does in its terminals:
//
//	t := terminals.New(env)
//	defer t.Close()
//	c := client.New(out, in, client.Options{
//		Capabilities: json.RawMessage(`{"terminal":true}`), Requests: t.Requests()})
//
// It must only be imported by tests.
package terminals

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sync"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/internal/test/logtest"
)

// Terminals are the terminals of an editor. Their methods are safe for concurrent use.
type Terminals struct {
	env []string

	mu       sync.Mutex
	requests []sdk.CreateTerminalRequest
	commands map[string]*command // by terminal
}

// command is a process in a terminal.
type command struct {
	*exec.Cmd
	ended  chan struct{}
	output logtest.Text
	limit  int // of the output, 0 for none
}

func (c *command) kill() { _ = c.Process.Kill() }

// New returns the terminals of an editor whose environment is that of the test and env.
func New(env []string) *Terminals {
	return &Terminals{env: append(os.Environ(), env...), commands: map[string]*command{}}
}

// Requests returns the functions that answer an agent's requests, by method.
func (t *Terminals) Requests() map[string]func(context.Context, json.RawMessage) (json.RawMessage, error) {
	return map[string]func(context.Context, json.RawMessage) (json.RawMessage, error){
		sdk.ClientMethodTerminalCreate:      t.create,
		sdk.ClientMethodTerminalOutput:      t.output,
		sdk.ClientMethodTerminalWaitForExit: t.wait,
		sdk.ClientMethodTerminalKill:        t.kill,
		sdk.ClientMethodTerminalRelease:     t.release,
	}
}

// Asked returns the requests for terminals so far.
func (t *Terminals) Asked() []sdk.CreateTerminalRequest {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.requests)
}

// Close ends all commands. It returns how many terminals were not released.
func (t *Terminals) Close() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.commands {
		c.kill()
		<-c.ended
	}
	return len(t.commands)
}

func (t *Terminals) create(_ context.Context, params json.RawMessage) (json.RawMessage, error) {
	var r sdk.CreateTerminalRequest
	if err := json.Unmarshal(params, &r); err != nil {
		return nil, err
	}
	c := &command{Cmd: exec.Command(r.Command, r.Args...), ended: make(chan struct{})}
	c.Stdout, c.Stderr, c.Env = &c.output, &c.output, slices.Clone(t.env)
	c.WaitDelay = time.Second // in case it leaves other processes behind
	for _, v := range r.Env {
		c.Env = append(c.Env, v.Name+"="+v.Value)
	}
	if r.Cwd != nil {
		c.Dir = *r.Cwd
	}
	if r.OutputByteLimit != nil {
		c.limit = *r.OutputByteLimit
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.requests = append(t.requests, r)
	if err := c.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = c.Wait()
		close(c.ended)
	}()
	id := fmt.Sprint("terminal ", len(t.requests))
	t.commands[id] = c
	return json.Marshal(map[string]string{"terminalId": id})
}

// command returns the command that the params of a request name.
func (t *Terminals) command(params json.RawMessage) (*command, error) {
	var r struct{ TerminalID string }
	if err := json.Unmarshal(params, &r); err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	c, ok := t.commands[r.TerminalID]
	if !ok {
		return nil, fmt.Errorf("no terminal %q", r.TerminalID)
	}
	return c, nil
}

func (t *Terminals) output(_ context.Context, params json.RawMessage) (json.RawMessage, error) {
	c, err := t.command(params)
	if err != nil {
		return nil, err
	}
	out := c.output.String()
	truncated := c.limit > 0 && len(out) > c.limit
	if truncated {
		out = out[len(out)-c.limit:]
	}
	answer := map[string]any{"output": out, "truncated": truncated}
	select {
	case <-c.ended:
		answer["exitStatus"] = c.status()
	default:
	}
	return json.Marshal(answer)
}

// status returns how a command has ended.
func (c *command) status() map[string]any {
	if code := c.ProcessState.ExitCode(); code >= 0 {
		return map[string]any{"exitCode": code, "signal": nil}
	}
	return map[string]any{"exitCode": nil, "signal": "SIGKILL"}
}

func (t *Terminals) wait(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
	c, err := t.command(params)
	if err != nil {
		return nil, err
	}
	select {
	case <-c.ended:
		return json.Marshal(c.status())
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (t *Terminals) kill(_ context.Context, params json.RawMessage) (json.RawMessage, error) {
	c, err := t.command(params)
	if err != nil {
		return nil, err
	}
	c.kill()
	return json.RawMessage(`{}`), nil
}

func (t *Terminals) release(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
	answer, err := t.kill(ctx, params)
	var r struct{ TerminalID string }
	_ = json.Unmarshal(params, &r) // as kill has done
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.commands, r.TerminalID)
	return answer, err
}
