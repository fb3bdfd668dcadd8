package workspace

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Where the system does not tell what is mounted, only a session that reaches any mounts goes on.
func TestC7_AMountThatIsNotKnownIsRefused(t *testing.T) {
	for policy, want := range map[Mounts]error{ExistingMounts: errMountUnknown, NoMounts: errMountUnknown, AnyMounts: nil} {
		g := &granted{policy: policy, ids: []mountID{7, 0}}
		require.Equal(t, want, g.refused(0), policy)
		require.NoError(t, g.refused(7), policy)
	}
	require.True(t, isMountRefusal(errMountUnknown))
}
