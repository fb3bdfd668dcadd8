package api

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"example.com/orders/internal/payments"
	"example.com/orders/internal/store"
)

func TestAnUnavailableProviderTellsWhenToRetry(t *testing.T) {
	down := httptest.NewServer(http.NotFoundHandler())
	down.Close()

	handler := New(store.Memory(), payments.NewClient(down.URL))
	response := httptest.NewRecorder()
	handler.ServeHTTP(response, httptest.NewRequest("POST", "/orders", strings.NewReader(`{"total":{"minor":1250,"currency":"EUR"}}`)))

	if response.Code != http.StatusServiceUnavailable {
		t.Fatalf("status %d", response.Code)
	}
	if response.Header().Get("Retry-After") == "" {
		t.Fatal("no Retry-After")
	}
}
