package discovery_test

import "context"

// testContext is the context of a test, or that of nobody, where a test has none.
func testContext(t any) context.Context {
	if has, ok := t.(interface{ Context() context.Context }); ok {
		return has.Context()
	}
	return context.Background()
}
