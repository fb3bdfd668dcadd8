package explore

import "context"

// query finds lines in a text. It is immutable and used by several goroutines at once.
type query interface {
	// find calls found for every line of text that is a hit, in order, until found returns false: with
	// its number from 1, the line without its end, where in it the match begins, and
	// a score, the higher the better. The error is the context's.
	find(ctx context.Context, text []byte, found func(number int, line []byte, at, score int) bool) error
	// full is the score of a hit that leaves nothing to be desired.
	full() int
}
