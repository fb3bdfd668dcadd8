package mcpclient

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestIsServed(t *testing.T) {
	var answer func(w http.ResponseWriter, r *http.Request)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { answer(w, r) }))
	defer server.Close()
	address := server.URL + "/client.json"
	document := fmt.Sprintf(`{"client_id": %q}`, address)
	for name, c := range map[string]struct {
		answer func(w http.ResponseWriter, r *http.Request)
		served bool
	}{
		"served":    {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, document) }, true},
		"missing":   {http.NotFound, false},
		"of others": {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"client_id": "x"}`) }, false},
		"a page":    {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }, false},
		"error": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			fmt.Fprint(w, document)
		}, false},
		"redirect": {func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/moved" {
				http.Redirect(w, r, "/moved", http.StatusFound)
				return
			}
			fmt.Fprint(w, document)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			answer = c.answer
			require.Equal(t, c.served, isServed(t.Context(), server.Client(), address))
		})
	}
	server.Close()
	require.False(t, isServed(t.Context(), server.Client(), address))
}
