package mcpclient_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/mcpclient"
)

func TestM7_EachServerAndFeatureIsWarnedOfOnce(t *testing.T) {
	f := with(t, mcpclient.Options{})
	f.change(open(t, folder(t)),
		self("one", "sdk", "REVISION="+eras[1]), self("two", "sdk", "REVISION="+eras[1]), self("old", "sdk", "REVISION="+eras[0]))
	for range 3 {
		for _, server := range []string{"one", "two", "old"} {
			f.call(server+".note", "{}")
			f.call(server+".roots", "{}")
		}
	}
	require.Equal(t, 2, f.logs.Count("asks for roots, which MCP deprecates"))
	require.Equal(t, 2, f.logs.Count("sends log messages by MCP, which deprecates"))
	for _, server := range f.Servers() {
		want := 2
		if server.Name == "old" {
			want = 0
		}
		require.Len(t, server.Warnings, want, server.Name)
	}
}
