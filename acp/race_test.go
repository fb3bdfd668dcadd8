//go:build race

package acp_test

// longReplay is shorter under the race detector, which makes SQLite twenty times slower.
const longReplay = 4_000
