package conform

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/acp-agent/acp-agent/internal/conform/rawrpc"
	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
)

// flood is how much memory the output of a process may need.
const flood = 32 << 20

// agent is a process of the agent.
type agent struct {
	*rawrpc.Conn
	child    *process.Process
	patience time.Duration // for an answer; three times as much to start, six times for a turn
	// hung is set once it has not answered in time.
	hung bool
}

// launch starts a process and answers its requests.
func (r *run) launch(ctx context.Context) (*agent, error) {
	child, err := process.Start(ctx, r.command, process.Options{Secrets: r.secrets})
	if err != nil {
		return nil, err
	}
	a := &agent{
		Conn: rawrpc.New(child.Stdout(), child.Stdin(), flood), child: child, patience: r.Patience,
	}
	go a.answer()
	return a, nil
}

// answer refuses what the agent asks the client for: nothing was offered.
func (a *agent) answer() {
	isRequest := func(m rawrpc.Message) bool { return m.Method != "" && m.ID != nil }
	for from := 0; ; from++ {
		m, at, err := a.Await(context.Background(), from, isRequest)
		if err != nil {
			return
		}
		reply := `"error":{"code":-32601,"message":"not offered"}`
		if m.Method == protocol.RequestPermission {
			reply = `"result":{"outcome":{"outcome":"cancelled"}}`
		}
		_ = a.Send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,%s}`, m.ID, reply)) // or it has ended
		from = at
	}
}

// initialize introduces a client of this version of the protocol.
func (a *agent) initialize(
	ctx context.Context, version int, ours string,
) (rawrpc.Message, error) {
	return a.ask(ctx, protocol.Initialize, map[string]any{
		"protocolVersion": version, "clientCapabilities": map[string]any{},
		"clientInfo": map[string]any{"name": "acp-agent conform", "version": ours},
	})
}

// ask sends a request and waits for the response, which may be an error response.
func (a *agent) ask(ctx context.Context, method string, params any) (rawrpc.Message, error) {
	ctx, cancel := a.within(ctx, method)
	defer cancel()
	m, err := a.Call(ctx, method, params)
	return m, a.explain(err)
}

// within returns the context in which a method must be answered. When it ends without an answer,
// the agent's input is closed: it may not read it, and then a write would not end.
func (a *agent) within(ctx context.Context, method string) (context.Context, context.CancelFunc) {
	wait := a.patience
	switch method {
	case protocol.Initialize:
		wait *= 3
	case protocol.SessionPrompt:
		wait *= 6
	}
	ctx, cancel := context.WithTimeoutCause(ctx, wait, silent(wait))
	stop := context.AfterFunc(ctx, func() { _ = a.child.Stdin().Close() })
	return ctx, func() {
		stop()
		cancel()
	}
}

// silent is the error of an agent that has not answered in time.
type silent time.Duration

func (s silent) Error() string { return fmt.Sprintf("no answer within %v", time.Duration(s)) }

// explain notes that the agent hangs, and says why it has ended.
func (a *agent) explain(err error) error {
	s, late := errors.AsType[silent](err)
	switch {
	case err == nil:
		return nil
	case late:
		a.hung = true
		return s
	case errors.Is(err, rawrpc.ErrFlood):
		a.hung = true
		return fmt.Errorf("it wrote more than %d MiB", flood>>20)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if exit, ok := errors.AsType[*process.ExitError](a.child.Wait(ctx)); ok {
		return fmt.Errorf("the process ended: %w", exit)
	}
	a.hung = true
	return errors.New("the process ended, or closed its output")
}

// usable reports whether the agent still answers.
func (a *agent) usable() bool {
	select {
	case <-a.Done():
		return false
	default:
		return !a.hung
	}
}

// stop ends the process and waits for its output.
func (a *agent) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_ = a.child.Stop(ctx)        // it ends every process that it can
	_ = a.child.Stdout().Close() // a flood is not read to its end
	<-a.Done()
}

// introduction has the members that the checks need of an answer to initialize.
type introduction struct {
	ProtocolVersion   json.RawMessage
	AgentInfo         info
	AgentCapabilities struct {
		LoadSession         bool
		SessionCapabilities map[string]json.RawMessage
	}
}

// offers reports whether the agent has advertised a capability.
func (i introduction) offers(capability string) bool {
	if capability == "loadSession" {
		return i.AgentCapabilities.LoadSession
	}
	value := i.AgentCapabilities.SessionCapabilities[capability]
	return value != nil && string(value) != "null"
}
