package serve

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/sqlite"
)

func TestOperationsOfTheStoreAreTimed(t *testing.T) {
	memory := sqlite.NewMemory()
	defer func() { require.NoError(t, memory.Close()) }()
	var timed []string
	s := timedStore{memory, func(operation string, _ time.Duration, _ error) { timed = append(timed, operation) }}
	_, err := s.List(t.Context(), sessionstore.Query{Limit: 1})
	require.NoError(t, err)
	_, err = s.Activate(t.Context(), "none", sessionstore.Activation{})
	require.Error(t, err)
	_, err = s.Get(t.Context(), "none")
	require.Error(t, err)
	require.Equal(t, []string{"list", "activate"}, timed, "failures count, others do not")
}
