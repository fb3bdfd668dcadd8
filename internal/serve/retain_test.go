package serve

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/sessionstore"
)

// Sessions of users are deleted when they are too old, while the server runs. Those of the
// machine's own user are not.
func TestOldSessionsAreDeleted(t *testing.T) {
	dir := t.TempDir()
	h := start(t, func(o *Options) { o.DeleteAfter = 90 * 24 * time.Hour })
	ana := connect(t, "ws://"+h.address, h.add("ana", dir)).initialize()
	used, unused := ana.open(dir).id(t), ana.open(dir).id(t)
	require.Empty(t, ana.say(used, "/ls").Error)
	theirs, err := h.options.Store.For("ana").Get(t.Context(), sessionstore.ID(used))
	require.NoError(t, err)
	_, err = h.options.Store.Create(t.Context(), sessionstore.Session{
		ID: "local", Agent: sessionstore.Agent{Kind: "explore"}, Keys: theirs.Keys})
	require.NoError(t, err)
	stored := func(owner string) (ids []string) {
		page, err := h.options.Store.For(owner).List(t.Context(), sessionstore.Query{})
		require.NoError(t, err)
		for _, s := range page.Sessions {
			ids = append(ids, string(s.ID))
		}
		return ids
	}
	after := func(days int) []string {
		require.NoError(t, h.deleteOld(t.Context(), time.Now().Add(time.Duration(days)*24*time.Hour)))
		return stored("ana")
	}
	require.ElementsMatch(t, []string{used, unused}, after(29))
	require.Equal(t, []string{used}, after(31))
	require.Equal(t, []string{used}, after(89))
	require.NoError(t, h.options.Accounts.Revoke("ana"))
	require.Empty(t, after(91), "of a user who was revoked, too")
	require.Equal(t, []string{"local"}, stored(""))
	require.Equal(t, 2, h.audit.Count(`"msg":"deleted old sessions","user":"ana","sessions":1`))
}
