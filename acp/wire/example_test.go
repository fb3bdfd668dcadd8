package wire_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/acp-agent/acp-agent/acp/wire"
)

func Example() {
	in := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"greet","params":{"name":"Ada"}}` + "\n")

	c := wire.NewConn(in, os.Stdout, wire.HandlerFunc(func(ctx context.Context, r *wire.Request) wire.Work {
		if r.Method != "greet" {
			return nil // -32601 for a request, nothing for a notification
		}
		return func() (json.RawMessage, error) { return r.Params, nil }
	}), wire.Options{})

	if err := c.Serve(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// {"jsonrpc":"2.0","id":1,"result":{"name":"Ada"}}
}
