package acp_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/internal/test/memstore"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
)

// A fork has the roots that its request gives, whatever its source has.
//
// Clause A14.
func TestForkInheritsNoRoots(t *testing.T) {
	c := connect(t, acp.Options{})
	c.initialize()
	a, b, d := folder(t), folder(t), folder(t)
	source := c.open(a, b)
	for given, want := range map[string][]string{
		"": {}, "[]": {}, encode([]string{d}): {d}, encode([]string{d, b}): {d, b},
	} {
		for _, cwd := range []string{a, d, b} {
			var fork struct{ SessionID string }
			params := altered(altered(rootsParams(source, cwd), "additionalDirectories", given),
				"mcpServers", "")
			require.NoError(t, json.Unmarshal(c.call("session/fork", params), &fork))
			roots := []string{}
			for _, root := range want {
				if root != cwd {
					roots = append(roots, root)
				}
			}
			got := c.find(fork.SessionID)
			require.Equal(t, cwd, got.Cwd)
			require.Equal(t, roots, got.AdditionalDirectories, "given %s", given)
			used := "[" + cwd
			for _, root := range roots {
				used += ", " + root
			}
			said := c.texts(fork.SessionID, "roots")
			require.Equal(t, used+"]", said[len(said)-1])
			require.Equal(t, given == "" && cwd != b, len(said) > 1, "told what it has lost: %q", said)
			require.Equal(t, []string{b}, c.find(source).AdditionalDirectories)
		}
	}
}

// The error of a fork without a working directory says what to send, and nothing is created.
//
// Clause A14.
func TestForkWithoutCwd(t *testing.T) {
	c := connect(t, acp.Options{})
	c.initialize()
	source := c.open(folder(t))
	for name, params := range map[string]string{
		"absent": `{"sessionId":"` + source + `"}`, "null": `{"sessionId":"` + source + `","cwd":null}`,
		"empty": `{"sessionId":"` + source + `","cwd":""}`,
	} {
		m := c.try("session/fork", params)
		require.Equal(t, jsonrpc.CodeInvalidParams, m.Error.Code, name)
		require.Contains(t, m.Error.Message, "cwd", name)
		require.Contains(t, m.Error.Message, "absolute path", name)
	}
	require.Len(t, c.list(`{}`), 1)
}

// A source may be active in another process, and in the middle of a turn there: it stays as it is.
//
// Clause A14.
func TestForkOfSessionActiveElsewhere(t *testing.T) {
	store := memstore.New(t)
	there, here := connect(t, acp.Options{Store: store}), connect(t, acp.Options{Store: store})
	there.initialize()
	here.initialize()
	a, b := folder(t), folder(t)
	id := there.open(a, b)
	there.texts(id, "say one")
	prompt, line := there.request("session/prompt", promptParams(id, "wait"))
	there.send(line)
	there.await(0, said("waiting"))
	before := there.find(id)

	var fork struct{ SessionID string }
	require.NoError(t, json.Unmarshal(here.call("session/fork", rootsParams(id, b, a)), &fork))
	require.Equal(t, before, there.find(id))
	queued, rejected := there.busy(id)
	require.Equal(t, "turn_in_progress", rejected.reason(t), "its turn goes on")
	there.send(notification("session/cancel", idParams(id)))
	require.Equal(t, "cancelled", there.response(queued).stopReason(t))
	require.Equal(t, "cancelled", there.response(prompt).stopReason(t))
	require.Equal(t, []string{"two"}, there.texts(id, "say two"), "nobody took it")
	require.Equal(t, "not_active", here.try("session/prompt", promptParams(id, "x")).reason(t),
		"nor is it active here")

	require.Equal(t, []string{"[" + b + ", " + a + "]"}, here.texts(fork.SessionID, "roots"))
	require.Equal(t, []string{a}, here.find(fork.SessionID).AdditionalDirectories)
	here.call("session/load", rootsParams(fork.SessionID, b))
	require.Contains(t, texts(here.messages(), fork.SessionID), "one")
	require.NotContains(t, texts(here.messages(), fork.SessionID), "waiting",
		"a turn that had not finished")
	require.NotContains(t, texts(here.messages(), fork.SessionID), "two")
}

// A copy that would have more than its request says is refused, and nothing is created.
//
// Clause A40.
func TestForkRefusesPositions(t *testing.T) {
	c := connect(t, acp.Options{})
	c.initialize()
	cwd := folder(t)
	source := c.open(cwd)
	c.texts(source, "say one")
	for _, position := range []string{`"c1"`, `""`, `7`, `{}`} {
		m := c.try("session/fork", altered(rootsParams(source, cwd), "cursorId", position))
		require.NotNil(t, m.Error, position)
		require.Equal(t, jsonrpc.CodeInvalidParams, m.Error.Code)
		require.Contains(t, m.Error.Message, "cursorId")
		require.Contains(t, m.Error.Message, "all finished turns")
	}
	require.Len(t, c.list(`{}`), 1)
	c.call("session/fork", altered(rootsParams(source, cwd), "cursorId", "null"))
}
