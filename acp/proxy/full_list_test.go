package proxy_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/acp/proxy"
	"github.com/acp-agent/acp-agent/workspace"
)

// directories are those that the agent was sent with its latest request of a method.
func (h *house) directories(method string) (list []string) {
	for _, r := range h.received() {
		if r.method == method {
			var p struct{ AdditionalDirectories []string }
			require.NoError(h.t, json.Unmarshal([]byte(r.params), &p))
			list = p.AdditionalDirectories
		}
	}
	return list
}

func spelled(r workspace.Roots) []string {
	list := []string{}
	for _, dir := range r.Additional().All() {
		list = append(list, dir.String())
	}
	return list
}

func TestP3_TheChildIsSentTheFullListInOrder(t *testing.T) {
	h := newHouse(t, abilities{Load: true, Resume: true, Fork: true, Roots: true}, proxy.Options{})
	all := roots(t, 3)
	v := h.enter()
	s, err := v.NewSession(t.Context(), client.Setup{Roots: all})
	require.NoError(t, err)
	require.Equal(t, spelled(all), h.directories("session/new"))
	v.leave()
	v = h.enter()
	for _, given := range []workspace.Roots{with(all, all.At(3).String(), all.At(1).String()), with(all), all} {
		_, err = v.LoadSession(t.Context(), s.ID, client.Setup{Roots: given})
		require.NoError(t, err)
		require.Equal(t, spelled(given), h.directories("session/load"))
		_, err = v.ResumeSession(t.Context(), s.ID, client.Setup{Roots: given})
		require.NoError(t, err)
		require.Equal(t, spelled(given), h.directories("session/resume"))
		_, err = v.ForkSession(t.Context(), s.ID, client.Setup{Roots: given})
		require.NoError(t, err)
		require.Equal(t, spelled(given), h.directories("session/fork"))
	}
}
