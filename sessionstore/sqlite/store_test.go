package sqlite_test

import (
	"flag"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/acp-agent/acp-agent/internal/testutil/proctest"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/sqlite"
	"github.com/acp-agent/acp-agent/sessionstore/storetest"
)

func TestMain(m *testing.M) {
	proctest.Play(play)
	// Each check of a property has a database of its own. More are tried with -rapid.checks.
	if err := flag.Set("rapid.checks", "30"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// open returns a store in a directory of its own, or in o's, that is closed with the test.
func open(t testing.TB, o sqlite.Options) *sqlite.Store {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	s := sqlite.New(o)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func TestStoreKeepsTheContract(t *testing.T) {
	storetest.Test(t, func(t *testing.T) sessionstore.Store { return open(t, sqlite.Options{}) })
}

func TestStoreKeepsTheContractWithTheRollbackJournalWhileTheClockStands(t *testing.T) {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	storetest.Test(t, func(t *testing.T) sessionstore.Store {
		return open(t, sqlite.Options{Now: func() time.Time { return noon }}.WithJournal(sqlite.JournalRollback))
	})
}
