package sqlite_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/memstore"
	"github.com/acp-agent/acp-agent/internal/test/proctest"
	"github.com/acp-agent/acp-agent/internal/test/storetest"
	"github.com/acp-agent/acp-agent/internal/test/volume"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/sqlite"
)

func TestMain(m *testing.M) {
	proctest.Play(play)
	volume.Checks(25, 100) // each uses a database of its own
	goleak.VerifyTestMain(m, dirtest.InMemory())
}

func TestContract(t *testing.T) {
	t.Parallel() // it waits for the disk
	storetest.Test(t, func(t *testing.T) sessionstore.Shared { return open(t, sqlite.Options{}) })
}

func TestContractWithRollbackJournalAndStoppedClock(t *testing.T) {
	t.Parallel() // it waits for the disk
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	storetest.Test(t, storetest.OpenOwners(t, func(t *testing.T) sessionstore.Shared {
		return open(t, sqlite.Options{Now: func() time.Time { return noon }}.WithJournal(sqlite.JournalRollback))
	}))
}

func TestContractInMemory(t *testing.T) {
	t.Parallel()
	storetest.Test(t, func(t *testing.T) sessionstore.Shared { return memstore.New(t) })
}
