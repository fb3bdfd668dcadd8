package acp_test

import (
	"fmt"
	goruntime "runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
)

// An id is remembered while something is done for it, and not a moment longer.
func TestA28_IdsThatWereClosedHoldNoMemory(t *testing.T) {
	const ids, size = 64, 64 << 10
	c := connect(t, acp.Options{})
	c.initialize()
	live := func() int64 {
		goruntime.GC()
		goruntime.GC() // what is pooled goes with the second
		var m goruntime.MemStats
		goruntime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	long := strings.Repeat("x", size)
	c.call("session/close", idParams(long)) // the buffers have grown
	before := live()
	for i := range ids {
		c.call("session/close", idParams(fmt.Sprint(i, long)))
		c.send(notification("session/cancel", idParams(fmt.Sprint(i, long))))
	}
	c.list(`{}`)
	require.Less(t, live()-before, int64(ids*size/2))
}
