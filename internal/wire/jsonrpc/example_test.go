package jsonrpc_test

import (
	"context"
	"encoding/json"
	"errors"
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

func ExampleReader() {
	lines := jsonrpc.NewReader(strings.NewReader("one\na line too long\nthree"), 5)
	for {
		line, err := lines.Append(nil)
		var long *jsonrpc.TooLongError
		switch {
		case errors.As(err, &long):
			fmt.Println("refused:", err)
			continue
		case err != nil:
			fmt.Println(err)
			return
		}
		fmt.Printf("%q\n", line)
	}
	// Output:
	// "one\n"
	// refused: a line is longer than the limit of 5 bytes
	// "three"
	// EOF
}
