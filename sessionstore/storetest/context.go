package storetest

import (
	"context"

	"github.com/stretchr/testify/require"
)

// contextOf is the context of a test or of a property's check.
func contextOf(t require.TestingT) context.Context {
	if c, ok := t.(interface{ Context() context.Context }); ok {
		return c.Context()
	}
	return context.Background()
}
