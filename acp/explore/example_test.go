package explore_test

import (
	"context"
	"fmt"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/explore"
)

// acp.Serve makes one backend for each connection.
func Example() {
	var factory func() backend.Backend = func() backend.Backend {
		return explore.New()
	}
	r := factory()
	info, err := r.Initialize(context.Background(), nil, nil)
	fmt.Println(info.Kind, err)
	// Output: explore <nil>
}
