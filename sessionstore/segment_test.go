package sessionstore_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/sessionstore"
)

// Whatever bit of stored updates is flipped, a note takes the place of its updates.
func TestUnpackDamaged(t *testing.T) {
	whole := []sessionstore.Update{
		parse(`{"update":{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"one"}}}`),
		parse(`{"_meta":{"a":1},"update":{"sessionUpdate":"plan","entries":[]}}`),
	}
	segment, n := sessionstore.Pack(whole)
	require.Equal(t, len(whole), n)
	require.Equal(t, whole, slices.Collect(sessionstore.Unpack(segment)))
	broken := [][]byte{nil, segment[:bytes.LastIndexByte(segment, '\n')]}
	for i := range len(segment) - len("01234567") {
		for bit := range 8 {
			damaged := bytes.Clone(segment)
			damaged[i] ^= 1 << bit
			broken = append(broken, damaged)
		}
	}
	for _, damaged := range broken {
		all := slices.Collect(sessionstore.Unpack(damaged))
		require.Len(t, all, 1, "%s", damaged)
		require.Equal(t, sessionstore.AgentMessageChunk, all[0].Kind)
		require.Contains(t, all[0].String(), `"note":true`)
		require.Contains(t, all[0].String(), "was damaged")
	}
}
