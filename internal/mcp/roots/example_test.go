package roots_test

import (
	"fmt"

	mcproots "github.com/acp-agent/acp-agent/internal/mcp/roots"
)

func ExampleParseURI() {
	_, err := mcproots.ParseURI("file://server/share")
	fmt.Println(err)
	_, err = mcproots.ParseURI("file:///src/app/../lib")
	fmt.Println(err)
	// Output:
	// "file://server/share" is not the URI of a directory: it names another host
	// "file:///src/app/../lib" is not the URI of a directory: it has a "." or ".." segment
}
