package tasks

import "context"

// Guarded has a value that one goroutine at a time uses. Unlike for a mutex, waiting for it ends
// with a context.
type Guarded[T any] struct {
	free chan *T // holds the value while nobody uses it
}

// Guard returns the zero value, guarded.
func Guard[T any]() Guarded[T] {
	g := Guarded[T]{make(chan *T, 1)}
	g.free <- new(T)
	return g
}

// With calls do with the value once nobody else uses it, unless ctx ends before.
func (g Guarded[T]) With(ctx context.Context, do func(*T) error) error {
	select {
	case value := <-g.free:
		defer func() { g.free <- value }()
		if ctx.Err() != nil { // even if the value was free
			return context.Cause(ctx)
		}
		return do(value)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
