// Package money holds amounts without rounding errors.
package money

import "fmt"

// Amount is a sum in the smallest unit of its currency: 12.50 euros are 1250 EUR.
type Amount struct {
	Minor    int64  `json:"minor"`
	Currency string `json:"currency"`
}

// Add is the sum of two amounts of one currency.
func (a Amount) Add(b Amount) (Amount, error) {
	if a.Currency != b.Currency {
		return Amount{}, fmt.Errorf("cannot add %s to %s", b.Currency, a.Currency)
	}
	return Amount{Minor: a.Minor + b.Minor, Currency: a.Currency}, nil
}

// Times is n times a.
func (a Amount) Times(n int) Amount {
	return Amount{Minor: a.Minor * int64(n), Currency: a.Currency}
}
