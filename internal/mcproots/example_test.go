package mcproots_test

import (
	"fmt"

	"github.com/acp-agent/acp-agent/internal/mcproots"
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
