package sessionstore_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/sessionstore"
)

// Clause A18.
func TestCursor(t *testing.T) {
	q := sessionstore.Query{Agent: sessionstore.Agent{Kind: "explore"}}
	want := sessionstore.Position{Updated: time.UnixMilli(1_700_000_000_123).UTC(), ID: "a/b ü"}
	q.Cursor = q.After(want)
	got, err := q.From()
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.Regexp(t, `^[A-Za-z0-9_-]+$`, string(q.Cursor))
}

func FuzzCursor(f *testing.F) {
	q := sessionstore.Query{}
	f.Add(string(q.After(sessionstore.Position{Updated: time.Unix(1, 0), ID: "x"})))
	f.Add("AA")
	f.Fuzz(func(t *testing.T, text string) {
		q := sessionstore.Query{Cursor: sessionstore.Cursor(text)}
		p, err := q.From()
		switch {
		case err != nil:
			require.ErrorAs(t, err, new(*sessionstore.CursorError))
		case text != "":
			require.Equal(t, q.Cursor, q.After(p), "a cursor has one spelling")
		}
	})
}
