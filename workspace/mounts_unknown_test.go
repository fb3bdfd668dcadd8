package workspace

import (
	"testing"

	"github.com/acp-agent/acp-agent/internal/files/dirfd"
	"github.com/stretchr/testify/require"
)

// Where the system does not tell mounts apart, only AnyMounts works.
//
// Clause C7.
func TestUnknownMounts(t *testing.T) {
	for policy, want := range map[Mounts]error{ExistingMounts: errMountUnknown,
		NoMounts: errMountUnknown, AnyMounts: nil} {
		g := &guard{policy: policy, mounts: []dirfd.MountID{7, 0}}
		require.Equal(t, want, g.CheckMount(0), policy)
		require.NoError(t, g.CheckMount(7), policy)
	}
}
