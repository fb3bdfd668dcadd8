// Package api is the HTTP API of the order service.
package api

import (
	"encoding/json"
	"errors"
	"net/http"

	"example.com/orders/internal/payments"
	"example.com/orders/internal/store"
)

// New returns the handler of all resources.
func New(orders *store.Orders, pay *payments.Client) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /orders/{id}", showOrder(orders))
	mux.Handle("POST /orders", placeOrder(orders, pay))
	return mux
}

// fail answers with a problem in JSON.
func fail(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	switch {
	case errors.Is(err, store.ErrNotFound):
		status = http.StatusNotFound
	case errors.Is(err, payments.ErrDeclined):
		status = http.StatusPaymentRequired
	case errors.Is(err, payments.ErrUnavailable):
		w.Header().Set("Retry-After", "30")
		status = http.StatusServiceUnavailable
	}
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": err.Error()})
}
