package postgres_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/sessionstore"
)

// What another server does to an open session is announced.
//
// Clause S3.
func TestLossIsAnnounced(t *testing.T) {
	address := server.Address(t)
	here, there := open(t, address), open(t, address)
	admin := connect(t, strings.Replace(address, "acp@", "admin@", 1))
	// announced waits until the lease is found to be lost.
	announced := func(changed <-chan struct{}, s sessionstore.Store, l sessionstore.Lease) error {
		for {
			select {
			case <-changed:
			case <-time.After(time.Minute):
				return errors.New("nothing was announced")
			}
			if err := s.Append(t.Context(), l, nil); err != nil {
				return err
			}
		}
	}
	for _, owner := range []string{"", "ann"} {
		s, other := here.For(owner), there.For(owner)
		taken, deleted, kept := create(t, s, "taken"), create(t, s, "deleted"), create(t, s, "kept")
		watch := func(l sessionstore.Lease) <-chan struct{} {
			changed, stop := s.Watch(l.ID)
			t.Cleanup(stop)
			require.Eventually(t, func() (listens bool) {
				err := admin.QueryRow(t.Context(), "SELECT EXISTS (SELECT 1 FROM pg_stat_activity "+
					"WHERE query = 'LISTEN acp_agent' AND state = 'idle')").Scan(&listens)
				return err == nil && listens
			}, time.Minute, time.Millisecond)
			<-changed
			return changed
		}
		onTaken, onDeleted, onKept := watch(taken), watch(deleted), watch(kept)
		_, err := other.Activate(t.Context(), "taken", sessionstore.Activation{Keys: appKeys(t)})
		require.NoError(t, err)
		require.NoError(t, other.Delete(t.Context(), "deleted"))
		require.ErrorAs(t, announced(onTaken, s, taken), new(*sessionstore.FencedError))
		require.ErrorAs(t, announced(onDeleted, s, deleted), new(*sessionstore.NotFoundError))
		require.NoError(t, s.Rename(t.Context(), "kept", "title"))
		_, err = s.BeginTurn(t.Context(), kept, sessionstore.Turn{})
		require.NoError(t, err)
		require.Empty(t, onKept)

		// Whatever happens while the connection is lost is noticed when it is back.
		onKept = watch(kept)
		disconnect(t, address)
		_, err = other.Activate(t.Context(), "kept", sessionstore.Activation{Keys: appKeys(t)})
		require.NoError(t, err)
		require.ErrorAs(t, announced(onKept, s, kept), new(*sessionstore.FencedError))
	}
}
