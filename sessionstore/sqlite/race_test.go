//go:build race

package sqlite

// manySessions is fewer under the race detector, which makes SQLite twenty times slower.
const manySessions = 5_000
