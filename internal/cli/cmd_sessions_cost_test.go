package cli

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/sqlite"
	"github.com/acp-agent/acp-agent/workspace"
)

// A folder's sum is marked if an agent there reports no cost, and so is the total. Others are not.
//
// Clause K1.
func TestSessionsCostMarksIncompleteFolders(t *testing.T) {
	dir, mixed, priced := t.TempDir(), t.TempDir(), t.TempDir()
	store := sqlite.New(sqlite.Options{Dir: dir})
	for _, one := range []struct {
		agent, folder string
		cost          float64
	}{{"claude", mixed, 1}, {"codex", mixed, 0}, {"claude", priced, 2}} {
		roots, err := workspace.NewRoots(one.folder, nil)
		require.NoError(t, err)
		lease, err := store.Create(t.Context(), sessionstore.Session{ID: sessionstore.NewID(),
			Agent: sessionstore.Agent{Kind: "proxy", Profile: one.agent},
			Keys:  sessionstore.Keys{Roots: roots, Real: []workspace.Dir{roots.Cwd()}}})
		require.NoError(t, err)
		require.NoError(t, store.Charge(t.Context(), lease, []sessionstore.Charge{
			{At: time.Now(), Meter: sessionstore.TurnMeter, Amount: 1},
			{At: time.Now(), Meter: sessionstore.InputMeter, Amount: 7},
			{At: time.Now(), Meter: sessionstore.CostMeter, Unit: "USD", Amount: one.cost},
		}))
	}
	require.NoError(t, store.Close())
	printed, err := runOn(t, dir, "sessions", "cost")
	require.NoError(t, err)
	for name, sums := range map[string]string{
		mixed: "1.0000 USD*  2  14", priced: "2.0000 USD  1  7", "total": "3.0000 USD*  3  21"} {
		words := strings.ReplaceAll(regexp.QuoteMeta(sums), "  ", ` +`)
		require.Regexp(t, regexp.QuoteMeta(name)+` +`+words+` `, printed)
	}
}
