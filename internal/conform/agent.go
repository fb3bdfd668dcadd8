package conform

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
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
	// ended is set once it has ended, or has not answered in time.
	ended bool
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
	go func() { _ = a.Each(context.Background(), a.answer) }() // until it ends
	return a, nil
}

// answer refuses what the agent asks the client for: nothing was offered.
func (a *agent) answer(m rawrpc.Message) error {
	reply := `"error":{"code":-32601,"message":"not offered"}`
	switch {
	case m.Method == "" || m.ID == nil:
		return nil
	case m.Method == protocol.RequestPermission:
		reply = `"result":{"outcome":{"outcome":"cancelled"}}`
	}
	return a.Send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,%s}`, m.ID, reply))
}

// ask sends a request and waits for the response, which may be an error response.
func (a *agent) ask(ctx context.Context, method string, params any) (rawrpc.Message, error) {
	id := a.NextID()
	return a.exchange(ctx, method, responseTo(id), rawrpc.Request(id, method, params))
}

func responseTo(id int) func(rawrpc.Message) bool {
	return func(m rawrpc.Message) bool { return m.IsResponse(strconv.Itoa(id)) }
}

// exchange sends lines and waits for a message, as long as a response to method may take.
func (a *agent) exchange(
	ctx context.Context, method string, match func(rawrpc.Message) bool, lines ...string,
) (m rawrpc.Message, err error) {
	wait := a.patience
	switch method {
	case protocol.Initialize:
		wait *= 3
	case protocol.SessionPrompt:
		wait *= 6
	}
	ctx, cancel := context.WithTimeoutCause(ctx, wait, fmt.Errorf("no answer within %v", wait))
	defer cancel()
	// It may not read its input, and then a write would not end.
	defer context.AfterFunc(ctx, func() { _ = a.child.Stdin().Close() })()
	from := a.Count()
	if err = a.Send(lines...); err == nil {
		m, _, err = a.Await(ctx, from, match)
	}
	a.ended = err != nil
	switch cause := context.Cause(ctx); {
	case err == nil:
		return m, nil
	case cause != nil:
		return m, cause
	case errors.Is(err, rawrpc.ErrFlood):
		return m, fmt.Errorf("it wrote more than %d MiB", flood>>20)
	}
	ending, end := context.WithTimeout(context.Background(), time.Second)
	defer end()
	if exit, ok := errors.AsType[*process.ExitError](a.child.Wait(ending)); ok {
		return m, fmt.Errorf("the process ended: %w", exit)
	}
	return m, errors.New("the process ended, or closed its output")
}

// usable reports whether the agent still answers.
func (a *agent) usable() bool {
	select {
	case <-a.Done():
		return false
	default:
		return !a.ended
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

// introduce returns the params of initialize of a client of a version of the protocol.
func (r *run) introduce(version int) map[string]any {
	return map[string]any{
		"protocolVersion": version, "clientCapabilities": map[string]any{},
		"clientInfo": map[string]any{"name": "acp-agent conform", "version": r.Version},
	}
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
