package client

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/internal/jsonrpc"
)

// Options configure a client. The zero value is usable: it offers the agent nothing, and drops updates.
type Options struct {
	// Name and Version are what the agent is told of us. Default: "acp-agent", "0".
	Name, Version string
	// Capabilities are members of clientCapabilities in addition to fs, which follows from
	// the handlers below. Nil for none.
	Capabilities json.RawMessage

	// Updates is given each session/update, one at a time in the order of the wire. Nothing else is
	// read meanwhile: it may block to slow the agent down, and must not wait for an answer of the agent.
	Updates func(ctx context.Context, u Update)
	// Notifications is given every other notification, as Updates is.
	Notifications func(ctx context.Context, method string, params json.RawMessage)

	// Permission answers session/request_permission. Its context ends when the session is cancelled;
	// the agent is then answered "cancelled", whatever it returns.
	Permission func(ctx context.Context, r sdk.RequestPermissionRequest) (sdk.RequestPermissionResponse, error)
	// ReadTextFile answers fs/read_text_file.
	ReadTextFile func(ctx context.Context, r sdk.ReadTextFileRequest) (sdk.ReadTextFileResponse, error)
	// WriteTextFile answers fs/write_text_file.
	WriteTextFile func(ctx context.Context, r sdk.WriteTextFileRequest) (sdk.WriteTextFileResponse, error)
	// Requests answers requests by method, those above included. A request that nothing here answers
	// gets "method not found".
	Requests map[string]func(ctx context.Context, params json.RawMessage) (json.RawMessage, error)

	// Wire are the connection's limits, tap and logger. Params is always opaque: what an agent sends is
	// taken as it is.
	Wire jsonrpc.Options
}

// Client is a connection to one agent. Its methods are safe for concurrent use.
type Client struct {
	options Options
	conn    *jsonrpc.Conn
	turns   turns

	mu    sync.Mutex
	agent *Agent // nil before Initialize
}

// New returns a client of the agent that reads out and writes in. Nothing is read before [Client.Serve].
func New(in io.Reader, out io.Writer, o Options) *Client {
	c := &Client{options: o}
	o.Wire.Params = jsonrpc.ParamsOpaque
	c.conn = jsonrpc.NewConn(in, out, jsonrpc.HandlerFunc(c.accept), o.Wire)
	return c
}

// Serve reads what the agent sends until its output ends (nil) or ctx does. Without it nothing
// is answered. It is called once.
func (c *Client) Serve(ctx context.Context) error { return c.conn.Serve(ctx) }

// Conn is the connection itself, for whatever the typed methods do not say.
func (c *Client) Conn() *jsonrpc.Conn { return c.conn }

// call sends params as JSON and decodes the answer into result, if that is not nil. It returns the answer as sent.
func (c *Client) call(ctx context.Context, method string, params, result any) (json.RawMessage, error) {
	raw, err := json.Marshal(params)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", method, err)
	}
	return decode(method, result)(c.conn.Call(ctx, method, raw)())
}

func decode(method string, result any) func(json.RawMessage, error) (json.RawMessage, error) {
	return func(answer json.RawMessage, err error) (json.RawMessage, error) {
		if err != nil {
			return nil, fmt.Errorf("%s: %w", method, err)
		}
		if result == nil {
			return answer, nil
		}
		if err := json.Unmarshal(answer, result); err != nil {
			return nil, fmt.Errorf("%s: the agent's answer cannot be read: %w", method, err)
		}
		return answer, nil
	}
}
