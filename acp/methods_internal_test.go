package acp

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/wire/protocol"
)

// The table of methods says what is served, and what roles may send. Whatever else there is needs
// every right.
//
// Clauses A37, N4.
func TestMethods(t *testing.T) {
	rights := map[string]right{
		protocol.Initialize: sees, protocol.SessionList: sees, protocol.SessionLoad: sees,
		protocol.SessionResume: sees, protocol.SessionClose: sees, protocol.SessionStatus: sees,
		protocol.CancelRequest: sees, protocol.SessionCancel: answers,
	}
	for _, m := range protocol.Methods() {
		row := methodOf(m.Name)
		require.Equal(t, rights[m.Name], row.needs, m.Name)
		if m.Side != protocol.AgentSide {
			continue
		}
		served := row.accept != nil || m.Name == protocol.SessionCancel
		require.Equal(t, m.Handling == protocol.Served, served, m.Name)
		require.Equal(t, m.Handling == protocol.Served, m.Why == "", m.Name)
		if strings.HasPrefix(m.Name, protocol.SessionPrefix) {
			require.NotNil(t, row.shape, "%s has no row", m.Name)
		}
	}
	for _, audited := range []string{protocol.SessionDelete, protocol.SessionArchive,
		protocol.SessionUnarchive, protocol.SessionSetTitle, protocol.Authenticate,
		protocol.Logout} {
		require.NotEmpty(t, methodOf(audited).did, audited)
	}
	for _, need := range []right{acts, answers, sees} {
		require.True(t, RoleFull.has(need))
		require.True(t, Role("").has(need))
		require.Equal(t, need != acts, RoleAnswer.has(need))
		require.Equal(t, need == sees, RoleWatch.has(need))
	}
}
