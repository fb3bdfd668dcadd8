package tools

import "context"

// Query finds lines in a text. It is immutable and used by several goroutines at once.
type Query interface {
	// Find calls found for every line of text that is a hit, in order, until found returns false. The
	// error is the context's.
	Find(ctx context.Context, text []byte, found func(Match) bool) error
	// Full is the score of a hit that leaves nothing to be desired.
	Full() int
}

// Match is a line that a [Query] found.
type Match struct {
	// Number is the line's, from 1.
	Number int
	// Start and End are where in the text it is, without the "\n" at its end.
	Start, End int
	// At is where in the line the match begins.
	At int
	// Score says how good a hit it is, the higher the better.
	Score int
}

// searchedAtOnce is how much is read or searched between two looks at the context, in bytes.
const searchedAtOnce = 16 << 10
