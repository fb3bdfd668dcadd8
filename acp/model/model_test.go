package model

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOpenSendsNothing(t *testing.T) {
	e := open(t, setup{})
	require.NotEmpty(t, e.id)
	require.Empty(t, e.model.Requests())
	require.Empty(t, e.model.Unknown())
}
