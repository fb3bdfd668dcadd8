// Package payments charges orders at the payment provider.
package payments

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"example.com/shared/money"
	"example.com/shared/retry"
)

// What can become of a charge.
var (
	ErrDeclined    = errors.New("the payment was declined")
	ErrUnavailable = errors.New("the payment provider cannot be reached")
)

// Client talks to one provider. It is safe for concurrent use.
type Client struct {
	url    string
	policy retry.Policy
}

// NewClient returns a client for the provider at url.
func NewClient(url string) *Client {
	return &Client{url: url, policy: retry.Policy{Attempts: 4, First: 200 * time.Millisecond, Factor: 2}}
}

// Charge charges total for an order. The order's id is the idempotency key, so a retry never
// charges twice.
func (c *Client) Charge(ctx context.Context, order string, total money.Amount) error {
	err := c.policy.Do(ctx, func(ctx context.Context) error {
		body := strings.NewReader(fmt.Sprintf(`{"amount":%d,"currency":%q}`, total.Minor, total.Currency))
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+"/charges", body)
		if err != nil {
			return retry.Permanent(err)
		}
		request.Header.Set("Idempotency-Key", order)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		switch {
		case response.StatusCode == http.StatusPaymentRequired:
			return retry.Permanent(ErrDeclined)
		case response.StatusCode >= 500:
			return fmt.Errorf("provider answered %s", response.Status)
		}
		return nil
	})
	if err != nil && !errors.Is(err, ErrDeclined) {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return err
}
