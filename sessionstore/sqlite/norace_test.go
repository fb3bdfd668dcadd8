//go:build !race

package sqlite

// manySessions is the size of a large store.
const manySessions = 100_000
