package postgres

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestProtected(t *testing.T) {
	for address, protected := range map[string]bool{
		"postgres://ann@/db?host=/tmp":                             true,
		"postgres://ann@localhost/db":                              true,
		"postgres://ann@[::1]/db":                                  true,
		"postgres://ann@db.example/db":                             false,
		"postgres://ann@db.example/db?sslmode=require":             false,
		"postgres://ann@db.example/db?sslmode=verify-ca":           true,
		"postgres://ann@db.example/db?sslmode=verify-full":         true,
		"postgres://ann@localhost,db.example/db":                   false,
		"postgres://ann@localhost,db.example/db?sslmode=disable":   false,
		"postgres://ann@a.example,db.example/?sslmode=verify-full": true,
	} {
		s, err := New(Options{Address: address})
		require.NoError(t, err)
		require.Equal(t, protected, s.database.protected(), address)
	}
}
