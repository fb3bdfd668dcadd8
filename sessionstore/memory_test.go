package sessionstore_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestMemory(t *testing.T) {
	storetest.Test(t, func(*testing.T) sessionstore.Store { return sessionstore.NewMemory() })
}

func TestMemoryWithStoppedClock(t *testing.T) {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	storetest.Test(t, func(*testing.T) sessionstore.Store {
		return sessionstore.NewMemoryAt(func() time.Time { return noon })
	})
}
