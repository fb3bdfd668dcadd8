package jsonrpc_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
)

func Example() {
	in := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"greet","params":{"name":"Ada"}}` + "\n")

	c := jsonrpc.NewConn(jsonrpc.NewLines(in, os.Stdout, 0), jsonrpc.HandlerFunc(func(ctx context.Context, r *jsonrpc.Request) jsonrpc.Work {
		if r.Method != "greet" {
			return nil // -32601 for a request, nothing for a notification
		}
		return func() (json.RawMessage, error) { return r.Params, nil }
	}), jsonrpc.Options{})

	if err := c.Serve(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// {"jsonrpc":"2.0","id":1,"result":{"name":"Ada"}}
}
