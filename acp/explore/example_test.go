package explore_test

import (
	"context"
	"fmt"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/explore"
)

// The adapter makes one runtime for each connection.
func Example() {
	var factory func() backend.Backend = func() backend.Backend {
		return explore.New(explore.Options{MaxHits: 50})
	}
	r := factory()
	info, err := r.Initialize(context.Background(), nil, nil)
	fmt.Println(info.Kind, err)
	// Output: explore <nil>
}
