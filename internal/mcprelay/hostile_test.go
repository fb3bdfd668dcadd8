package mcprelay_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/mcprelay"
)

// questions are so many of a server for the roots, each with an id of so many bytes.
func questions(n, size int) io.Reader {
	var all strings.Builder
	for i := range n {
		fmt.Fprintf(&all, `{"jsonrpc":"2.0","id":"%d%s","method":"roots/list"}`+"\n", i, strings.Repeat("x", size))
	}
	return strings.NewReader(all.String())
}

func TestHostileAServerThatAsksAndDoesNotRead(t *testing.T) {
	var log, server bytes.Buffer
	p := mcprelay.NewPumps(mcprelay.Options{Logger: slog.New(slog.NewTextHandler(&log, nil)), MaxMessage: 10_000, MaxOwn: 100_000},
		`{"roots":[]}`, io.Discard, &server)
	require.NoError(t, p.FromServer(questions(5000, 1)))
	require.Equal(t, 1, strings.Count(log.String(), "\n"), "it is said once")
	p.Flush()
	require.LessOrEqual(t, strings.Count(server.String(), "\n"), 1024)

	server.Reset()
	require.NoError(t, p.FromServer(questions(500, 5000)))
	p.Flush()
	require.Greater(t, server.Len(), 90_000)
	require.Less(t, server.Len(), 110_000, "the bytes that wait are bounded too")
	require.NoError(t, p.FromServer(questions(1, 1)))
	server.Reset()
	p.Flush()
	require.Equal(t, 1, strings.Count(server.String(), "\n"), "there is room again")
}

func TestHostileAResultThatAsksVeryOften(t *testing.T) {
	var client, server bytes.Buffer
	p := mcprelay.NewPumps(mcprelay.Options{}, `{"roots":[]}`, &client, &server)
	require.NoError(t, p.FromClient(strings.NewReader(modernCall("1", "")+"\n")))
	server.Reset()
	var all []string
	for i := range 20_000 {
		all = append(all, fmt.Sprintf(`"%d":{"method":"roots/list"}`, i))
	}
	done := make(chan error, 1)
	go func() { done <- p.FromServer(strings.NewReader(asks("1", "", strings.Join(all, ",")) + "\n")) }()
	select {
	case err := <-done:
		require.NoError(t, err)
	case <-time.After(patience):
		t.Fatal("still at work")
	}
	p.Flush()
	require.Empty(t, server.String())
	require.Contains(t, client.String(), `"id":1,"error"`)
	require.Contains(t, client.String(), "asked 20000 questions in one result, and 100 are the limit")
	calls, _ := p.Held()
	require.Zero(t, calls)
}
