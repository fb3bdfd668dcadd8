package sessionstore_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/sessionstore"
)

// Whatever bit of a stored segment is flipped, only readable updates come back, and at least one
// update is told of as damaged if one can no longer be read.
func TestUnpackDamaged(t *testing.T) {
	whole := []sessionstore.Update{
		parse(`{"update":{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"one"}}}`),
		parse(`{"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"two"}}}`),
		parse(`{"_meta":{"a":1},"update":{"sessionUpdate":"plan","entries":[]}}`),
	}
	segment, n := sessionstore.Pack(whole)
	require.Equal(t, len(whole), n)
	require.Equal(t, whole, slices.Collect(sessionstore.Unpack(segment)))
	lines := segment[:bytes.LastIndexByte(segment, '\n')]
	require.Equal(t, whole, slices.Collect(sessionstore.Unpack(lines)), "without a checksum")
	for i := range segment {
		for bit := range 8 {
			damaged := bytes.Clone(segment)
			damaged[i] ^= 1 << bit
			for u := range sessionstore.Unpack(damaged) {
				_, err := sessionstore.ParseUpdate(u.Raw)
				require.NoError(t, err, "%s", damaged)
			}
		}
	}
	for damage, want := range map[string]string{
		`"update":{"sessionUpdate":"agent`: "1 update was damaged",
		`e":{"sessionUpdate"`:              "3 updates were damaged",
		`{"sessionUpdate":"plan"`:          "1 update was damaged",
		`"content"`:                        "2 updates were damaged",
		`"entries"`:                        "1 update was damaged",
	} {
		broken := strings.ReplaceAll(string(segment), damage, strings.ReplaceAll(damage, `"`, "x"))
		if name := strings.Trim(damage, `"`); len(name) == len(damage)-2 { // still JSON
			broken = strings.ReplaceAll(string(segment), damage, `"`+name[1:]+`x"`)
		}
		all := slices.Collect(sessionstore.Unpack([]byte(broken)))
		notes := slices.DeleteFunc(slices.Clone(all), func(u sessionstore.Update) bool { return !strings.Contains(u.String(), `"note":true`) })
		require.Len(t, notes, 1)
		require.Contains(t, notes[0].String(), want)
		require.Equal(t, sessionstore.AgentMessageChunk, notes[0].Kind)
	}
	key := strings.Replace(string(segment), `{"update":{"sessionUpdate":"agent`, `{"upd`+"\x61\x14"+`e":{"sessionUpdate":"agent`, 1)
	require.Len(t, slices.Collect(sessionstore.Unpack([]byte(key))), 3, "a note takes its place")
}
