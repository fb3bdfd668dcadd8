//go:build !race

package acp_test

// longReplay is the number of updates of a long replay.
const longReplay = 100_000
