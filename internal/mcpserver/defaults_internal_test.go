package mcpserver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestM8_AListIsGoodForFiveSecondsWithoutListChanged(t *testing.T) {
	require.Equal(t, 5*time.Second, Options{}.withDefaults().MaxAge)
}
