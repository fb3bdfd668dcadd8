package client_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/workspace"
)

func Example() {
	ctx, cancel := context.WithCancel(context.Background())
	in, out, wait := exampleAgent(ctx) // the streams of an agent
	defer wait()
	defer cancel()

	c := client.New(in, out, client.Options{
		Updates: func(_ context.Context, u client.Update) { fmt.Println(u.Kind, string(u.Update)) },
	})
	var serving sync.WaitGroup
	serving.Go(func() { _ = c.Serve(ctx) })
	defer serving.Wait()
	defer cancel()

	if _, err := c.Initialize(ctx); err != nil {
		fmt.Println(err)
		return
	}
	roots, err := workspace.NewRoots("/src/app", []string{"/src/lib"})
	if err != nil {
		fmt.Println(err)
		return
	}
	s, err := c.NewSession(ctx, client.Setup{Roots: roots})
	if err != nil {
		fmt.Println(err)
		return
	}
	end, err := c.Prompt(ctx, s.ID, sdk.TextBlock("hello"))
	fmt.Println(end.StopReason, err)
	// Output:
	// _greeting {"sessionUpdate":"_greeting"}
	// end_turn <nil>
}

// exampleAgent is an agent that greets.
func exampleAgent(ctx context.Context) (io.Reader, io.Writer, func()) {
	agentIn, out := io.Pipe()
	in, agentOut := io.Pipe()
	var conn *jsonrpc.Conn
	conn = jsonrpc.NewConn(jsonrpc.NewLines(agentIn, agentOut, 0),
		jsonrpc.HandlerFunc(func(ctx context.Context, r *jsonrpc.Request) jsonrpc.Work {
			return func() (json.RawMessage, error) {
				switch r.Method {
				case "initialize":
					return json.RawMessage(
						`{"protocolVersion":1,"agentCapabilities":{"sessionCapabilities":{"additionalDirectories":{}}}}`), nil
				case "session/new":
					return json.RawMessage(`{"sessionId":"s1"}`), nil
				}
				err := conn.Notify(ctx, "session/update",
					json.RawMessage(`{"sessionId":"s1","update":{"sessionUpdate":"_greeting"}}`))
				return json.RawMessage(`{"stopReason":"end_turn"}`), err
			}
		}), jsonrpc.Options{})
	done := make(chan struct{})
	go func() { defer close(done); _ = conn.Serve(ctx) }()
	return in, out, func() { <-done }
}
