package mcptest_test

//lint:file-ignore SA1019 the SDK marks all of roots as deprecated (SEP-2577)

import (
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/acp-agent/acp-agent/internal/test/mcptest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestGuard(t *testing.T) {
	g := mcptest.Guard(t, "Authorization", "yes", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "in") }))
	get := func(header string) int {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, g.URL+"/path", nil)
		require.NoError(t, err)
		r.Header.Set("Authorization", header)
		transport := &http.Transport{DisableKeepAlives: true}
		response, err := transport.RoundTrip(r)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		return response.StatusCode
	}
	require.Equal(t, http.StatusOK, get("yes"))
	require.Empty(t, g.Refused())
	require.Equal(t, http.StatusUnauthorized, get("no"))
	require.Equal(t, []string{"GET /path"}, g.Refused())
}
