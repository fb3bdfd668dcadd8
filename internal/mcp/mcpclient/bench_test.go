package mcpclient_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/mcp/mcpclient"
	"github.com/acp-agent/acp-agent/internal/test/roottest"
)

// BenchmarkStart measures starting servers up to their first listing, including the time to ask for
// roots.
func BenchmarkStart(b *testing.B) {
	for _, n := range []int{1, 10} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			w := roottest.Open(b, folder(b))
			var configs []mcpclient.Config
			for i := range n {
				configs = append(configs, self(fmt.Sprint("s", i), "sdk", "ASK=1", "REVISION=2025-11-25"))
			}
			for b.Loop() {
				f := newFixture(b, mcpclient.Options{})
				f.change(w, configs...)
				tools, err := f.list(b.Context())
				require.NoError(b, err)
				require.NotEmpty(b, tools)
				require.NoError(b, f.Close(context.Background()))
			}
		})
	}
}
