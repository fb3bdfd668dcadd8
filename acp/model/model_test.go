package model

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/sessionstore"
)

func TestOpenSendsNothing(t *testing.T) {
	e := open(t, setup{})
	require.NotEmpty(t, e.id)
	require.Empty(t, e.model.Requests())
	require.Empty(t, e.model.Unknown())
}

// Clause B1.
func TestKeysAppearNowhere(t *testing.T) {
	keys := make(chan string, 2)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		keys <- r.Header.Get("Authorization")
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprintf(w, `{"error":{"message":"invalid key %s"}}`, r.Header.Get("Authorization"))
	}))
	t.Cleanup(server.Close)
	e := open(t, setup{
		model: func(m *Model) {
			m.BaseURL = server.URL
			m.Key = func(_ context.Context, rejected string) (string, error) {
				if rejected != "" {
					return "sk-new-secret", nil
				}
				return "sk-old-secret", nil
			}
		},
	})
	r := e.prompt("Hello")
	require.Equal(t, "Bearer sk-old-secret", <-keys)
	require.Equal(t, "Bearer sk-new-secret", <-keys, "a rejected key is replaced")
	require.Contains(t, r.text(),
		"server rejected the key for the model scripted: invalid key Bearer [secret]; check the "+
			"key")
	for _, u := range r.updates {
		require.NotContains(t, string(u.Raw), "-secret")
	}
	require.NotContains(t, string(r.result), "-secret")
	for u, err := range e.setup.store.History(t.Context(), sessionstore.ID(e.id)) {
		require.NoError(t, err)
		require.NotContains(t, string(u.Raw), "-secret")
	}
}
