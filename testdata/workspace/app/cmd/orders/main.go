// Command orders serves the order API and its web page.
package main

import (
	"flag"
	"log"
	"net/http"

	"example.com/orders/internal/api"
	"example.com/orders/internal/payments"
	"example.com/orders/internal/store"
)

func main() {
	listen := flag.String("listen", "localhost:8080", "address to listen on")
	database := flag.String("database", "orders.db", "file of the order database")
	provider := flag.String("payments", "https://payments.example.com/v2", "URL of the payment provider")
	flag.Parse()

	orders, err := store.Open(*database)
	if err != nil {
		log.Fatal(err)
	}
	defer orders.Close()

	handler := api.New(orders, payments.NewClient(*provider))
	log.Printf("listening on %s", *listen)
	log.Fatal(http.ListenAndServe(*listen, handler))
}
