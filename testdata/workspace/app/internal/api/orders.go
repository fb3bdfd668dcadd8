package api

import (
	"encoding/json"
	"net/http"

	"example.com/orders/internal/payments"
	"example.com/orders/internal/store"
)

// maxBody is the most that a request may send, in bytes.
const maxBody = 1 << 20

func showOrder(orders *store.Orders) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		order, err := orders.Find(r.Context(), r.PathValue("id"))
		if err != nil {
			fail(w, err)
			return
		}
		_ = json.NewEncoder(w).Encode(order)
	})
}

// placeOrder stores the order before it is charged, so that a crash between the two
// leaves an order to look at and not a payment without one.
func placeOrder(orders *store.Orders, pay *payments.Client) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var order store.Order
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&order); err != nil {
			http.Error(w, "the order is not valid JSON", http.StatusBadRequest)
			return
		}
		if err := orders.Add(r.Context(), &order); err != nil {
			fail(w, err)
			return
		}
		// FIXME: an order whose charge failed stays open for ever.
		if err := pay.Charge(r.Context(), order.ID, order.Total); err != nil {
			fail(w, err)
			return
		}
		w.WriteHeader(http.StatusCreated)
	})
}
