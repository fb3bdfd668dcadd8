package serve

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/sessionstore"
)

// say sends a prompt that the agent answers.
func (e *editor) say(session, text string) answer {
	e.t.Helper()
	return e.call("session/prompt", map[string]any{
		"sessionId": session, "prompt": []any{map[string]string{"type": "text", "text": text}},
	})
}

// id returns the id of a session that was opened.
func (a answer) id(t *testing.T) (id string) {
	t.Helper()
	require.Empty(t, a.Error)
	var result struct{ SessionID string }
	require.NoError(t, json.Unmarshal(a.Result, &result))
	return result.SessionID
}

// A user who stores too much can only read and delete. Others are not concerned.
//
// Clause N6.
func TestStoredBytesAreLimited(t *testing.T) {
	dir := t.TempDir()
	h := start(t, func(o *Options) { o.StoredBytes = 100 << 10 })
	ana := connect(t, "ws://"+h.address, h.add("ana", dir)).initialize()
	bob := connect(t, "ws://"+h.address, h.add("bob", dir)).initialize()
	first, long := ana.open(dir).id(t), strings.Repeat("word ", 12<<10)
	require.Empty(t, ana.say(first, long).Error)
	other := connect(t, "ws://"+h.address, h.another("ana")).initialize()
	for _, refused := range []answer{ana.say(first, long), other.say(other.open(dir).id(t), long)} {
		require.Contains(t, refused.Error.Message, "all of the 100 KiB that the server allows you")
		require.JSONEq(t, `{"reason":"quota_exceeded"}`, string(refused.Error.Data))
	}
	require.Empty(t, bob.say(bob.open(dir).id(t), long).Error)
	require.Empty(t, ana.say(first, "/ls").Error, "there is room for this one")

	require.Empty(t, ana.call("session/delete", map[string]any{"sessionId": first}).Error)
	h.share("ana").asked = time.Now().Add(-quotaRecheck)
	require.Empty(t, ana.say(ana.open(dir).id(t), long).Error)
}

// A session counts although nothing was said in it, and an account may have a limit of its own.
//
// Clause N6.
func TestUnusedSessionsCount(t *testing.T) {
	dir := t.TempDir()
	h := start(t, func(o *Options) { o.StoredBytes = 1 << 30 })
	secret := h.add("ana", dir)
	account, err := h.options.Accounts.Account("ana")
	require.NoError(t, err)
	account.Limits.StoredBytes = 5 * sessionstore.SessionBytes
	require.NoError(t, h.options.Accounts.Set(account))
	ana := connect(t, "ws://"+h.address, secret).initialize()
	opened := 0
	for ; opened < 10; opened++ {
		if a := ana.open(dir); a.Error.Message != "" {
			require.Contains(t, a.Error.Message, "that the server allows you")
			break
		}
	}
	require.Positive(t, opened)
	require.LessOrEqual(t, opened, 5)
}
