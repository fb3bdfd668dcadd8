package sandbox

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRunWithoutPolicy(t *testing.T) {
	launch := Launch{Path: "/bin/true", Args: []string{"true"}}
	require.NoError(t, Policy{}.Run(launch, func(l Launch) error {
		require.Equal(t, launch, l)
		return nil
	}))
}
