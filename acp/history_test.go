package acp_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/backend"
)

// historyTexts are the texts of a history.
func historyTexts(t *testing.T, a backend.Activation) []string {
	t.Helper()
	all := []string{}
	for u, err := range a.History {
		require.NoError(t, err)
		var update struct {
			Update struct{ Content struct{ Text string } }
		}
		require.NoError(t, json.Unmarshal(u, &update))
		all = append(all, update.Update.Content.Text)
	}
	return all
}

// A history can be read while Open runs and later, of every kind of activation.
func TestA27_AHistoryIsReadAsLongAsItsSessionIsOpen(t *testing.T) {
	var latest backend.Activation
	var during []string
	r := &scripted{}
	c := connect(t, acp.Options{Backend: r.serve})
	r.opened = func(a backend.Activation, _ backend.Host) { latest, during = a, historyTexts(t, a) }
	c.initialize()
	a := folder(t)
	id := c.open(a)
	require.Equal(t, []string{}, during, "new")
	require.Equal(t, []string{}, historyTexts(t, latest))
	c.texts(id, "say one")
	require.Equal(t, []string{"say one", "one"}, historyTexts(t, latest))
	created := latest

	for _, method := range []string{"session/load", "session/resume"} {
		c.call(method, rootsParams(id, a))
		require.Equal(t, []string{"say one", "one"}, during, method)
		require.Equal(t, during, historyTexts(t, latest))
	}
	c.call("session/fork", rootsParams(id, a))
	require.Equal(t, []string{"say one", "one"}, during, "fork")
	c.texts(id, "say two")
	require.Equal(t, []string{"say one", "one"}, historyTexts(t, latest), "its own, from then on")
	require.Equal(t, []string{"say one", "one", "say two", "two"}, historyTexts(t, created))

	c.call("session/delete", idParams(id))
	require.Error(t, firstError(created))
	c.leave()
	require.ErrorIs(t, firstError(latest), backend.ErrClosed)
}

func firstError(a backend.Activation) error {
	for _, err := range a.History {
		if err != nil {
			return err
		}
	}
	return nil
}
