package jsonrpc_test

import (
	"errors"
	"fmt"
	"strings"

	"github.com/acp-agent/acp-agent/internal/jsonrpc"
)

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
