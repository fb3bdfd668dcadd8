package proxy

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/internal/sandbox/hosts"
	"github.com/acp-agent/acp-agent/internal/text/secret"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
)

// peer is the agent at the other end of a [child]. Today it is a process. A successor in a proxy
// chain, to which messages go in an envelope on the client's own connection, would be another peer:
// a type in its own file, which startChild makes in place of a processPeer. Nothing else asks
// what the peer is.
type peer interface {
	// Name returns the peer's name in the log and in errors.
	Name() string
	// CallFunc, TryNotify and ForceNotify send the peer a message, as those of [jsonrpc.Conn] do.
	CallFunc(ctx context.Context, method string, params backend.Raw,
		onResponse func(backend.Raw, error)) jsonrpc.Work
	TryNotify(method string, params backend.Raw) error
	ForceNotify(method string, params backend.Raw) error
	// Serve handles the peer's messages until the peer or ctx ends. Messages can be sent from then
	// on. The error says why the connection failed, if it did.
	Serve(ctx context.Context) error
	// End ends the peer, at once if ctx ends, and returns how it ended. It fails if the peer cannot
	// be ended. It may be called at any time and more than once.
	End(ctx context.Context) (*endedError, error)
}

// processPeer is a process of the agent, which speaks over its standard streams.
type processPeer struct {
	*jsonrpc.Conn
	process *process.Process
}

// connection has the needs of startProcess for the connection to a process.
type connection struct {
	handler jsonrpc.Handler
	invalid func(ctx context.Context, line []byte, tooLong bool)
	secrets *secret.Scrubber
	refused func(hosts.Refusal)
	options Options
}

// startProcess starts a process of the agent.
func startProcess(ctx context.Context, command Command, c connection) (*processPeer, error) {
	o := c.options
	p, err := process.Start(ctx, command, process.Options{
		Logger: o.Logger, Secrets: c.secrets, Grace: o.limits.ProcessGrace,
		Refused: c.refused,
	})
	if err != nil {
		return nil, err
	}
	lines := jsonrpc.NewLines(p.Stdout(), childInput{p}, o.limits.MaxLine)
	return &processPeer{process: p, Conn: jsonrpc.NewConn(lines, c.handler, jsonrpc.Options{
		OpaqueParams: true, Tap: traced(p, c.secrets, o.Trace), MaxQueue: o.limits.MaxQueue,
		Invalid: c.invalid, Grace: 100 * time.Millisecond, Logger: o.Logger,
	})}, nil
}

// Name implements [peer].
func (p *processPeer) Name() string { return p.process.Name() }

// End implements [peer]: it ends the process with its group.
func (p *processPeer) End(ctx context.Context) (*endedError, error) {
	_ = p.process.Stdout().Close() // the connection may have closed it
	if err := p.process.Stop(ctx); err != nil {
		return nil, err
	}
	return &endedError{
		Name: p.Name(), Exit: p.process.Wait(context.WithoutCancel(ctx)), Stderr: p.process.Stderr(),
	}, nil
}

// traced returns the function that passes the messages of a process to trace, or nil if trace is
// nil.
func traced(
	p *process.Process, secrets *secret.Scrubber, trace func(process string, sent bool, line []byte),
) jsonrpc.Tap {
	if trace == nil {
		return nil
	}
	name := fmt.Sprintf("%s[%d]", strings.ReplaceAll(p.Name(), " ", "_"), p.PID())
	return func(sent bool, line []byte) {
		if clean := secrets.JSON(line); clean != nil { // otherwise it is not JSON
			line = clean
		}
		trace(name, sent, line)
	}
}

// childInput is a process's stdin. When writing fails, it ends the process and discards the output,
// so that the connection continues until everything that the process wrote has been read.
type childInput struct{ process *process.Process }

// Write fails only if the process cannot be ended.
func (i childInput) Write(p []byte) (int, error) {
	if _, err := i.process.Stdin().Write(p); err != nil {
		return len(p), i.process.Stop(context.Background())
	}
	return len(p), nil
}

// Close unblocks Write.
func (i childInput) Close() error { return i.process.Stdin().Close() }
