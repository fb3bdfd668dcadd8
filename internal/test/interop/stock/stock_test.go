package stock_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/acp-agent/acp-agent/internal/test/interop/stock"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/sqlite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open opens what was stocked as the program does.
func open(t *testing.T, dir string) *sqlite.Store {
	t.Helper()
	s := sqlite.New(sqlite.Options{Dir: dir})
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func TestSessionHistory(t *testing.T) {
	dir := t.TempDir()
	s := stock.Open(dir)
	require.NoError(t, s.Session(t.Context(), stock.Session{ID: "long", Cwd: t.TempDir(), Chunks: 5000, Messages: 10}))
	require.NoError(t, s.Close())
	var updates []string
	for u, err := range open(t, dir).History(t.Context(), "long") {
		require.NoError(t, err)
		updates = append(updates, u.String())
	}
	require.Less(t, len(updates), 5000, "chunks are joined")
	require.Contains(t, updates[0], "update 0\\nupdate 1\\n")
	require.Contains(t, updates[len(updates)-1], "message 9")
	require.Equal(t, 5000, strings.Count(strings.Join(updates, ""), "update "))
}

func TestMultiply(t *testing.T) {
	dir, cwd := t.TempDir(), t.TempDir()
	s := stock.Open(dir)
	for i := range 3 {
		require.NoError(t, s.Session(t.Context(), stock.Session{ID: fmt.Sprint(i), Cwd: cwd}))
	}
	require.NoError(t, s.Multiply(t.Context(), 4))
	require.NoError(t, s.Session(t.Context(), stock.Session{ID: "one more", Cwd: cwd, Messages: 1}))
	require.NoError(t, s.Close())
	page, err := open(t, dir).List(t.Context(), sessionstore.Query{})
	require.NoError(t, err)
	ids := map[sessionstore.ID]bool{}
	for _, listed := range page.Sessions {
		require.Equal(t, cwd, listed.Keys.Roots.Cwd().String())
		ids[listed.ID] = true
	}
	require.Len(t, ids, 13)
}

func ExampleStore() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "stock")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	s := stock.Open(dir)
	fmt.Println(s.Session(ctx, stock.Session{ID: "long", Cwd: os.TempDir(), Messages: 1000}))
	fmt.Println(s.Close())
	// Output:
	// <nil>
	// <nil>
}
