package acp_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/jsonrpc"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// What is wrong in one stage is told alone, though the request is wrong in every later one too.
func TestA5_StagesOfCheckingComeInOrder(t *testing.T) {
	a, denied := folder(t), folder(t)
	deny, err := workspace.ParseDir(denied)
	require.NoError(t, err)
	r, store := &scripted{}, sessionstore.NewMemory()
	other := connect(t, acp.Options{Store: store, Backend: func() backend.Backend { return &scripted{kind: "other"} }})
	other.initialize()
	foreign := other.open(a)
	c := connect(t, acp.Options{
		Store: store, Backend: func() backend.Backend { return r },
		Workspace: workspace.Options{MaxRoots: 3, Policy: workspace.Policy{Deny: []workspace.Dir{deny}}},
	})
	c.initialize()
	id := c.open(a)
	before := string(c.call("session/list", `{}`))

	missing, file, nowhere := filepath.Join(a, "missing"), filepath.Join(a, "file"), filepath.Join(a, "nowhere")
	write(t, a, "file", "")
	write(t, denied, "below/file", "")
	below := filepath.Join(denied, "below")
	link := filepath.Join(folder(t), "link")
	linkTo(t, link, below)
	many := []string{missing, file, denied}
	for _, step := range []struct {
		name       string
		methods    []string
		params     string
		violations []string
		reason     string
	}{
		{"1 before 2: shape, then the id", opening[1:], altered(rootsParams("unknown", nowhere, many...), "additionalDirectories", `["rel"]`), []string{"additionalDirectories[0] relative"}, ""},
		{"1 before 2: servers, then the id", opening[1:], altered(rootsParams("unknown", nowhere, many...), "mcpServers", `{}`), []string{"mcpServers type"}, ""},
		{"1: an id that is none, with the rest", opening[1:], altered(altered(rootsParams(id, "rel"), "sessionId", `7`), "mcpServers", `{}`),
			[]string{"sessionId type", "cwd relative", "mcpServers type"}, ""},
		{"2 before 3: an unknown id, then cwd", opening[1:], rootsParams("unknown", nowhere, many...), nil, "not_found"},
		{"2 before 3: another agent's, then cwd", opening[1:], rootsParams(foreign, nowhere, many...), []string{"sessionId other_agent"}, ""},
		{"3 before 4: cwd, then the count", opening[1:3], rootsParams(id, nowhere, many...), []string{"cwd cwd_mismatch"}, ""},
		{"4 before 5: the count, then the disk", opening, rootsParams(id, a, many...), []string{"additionalDirectories too_many"}, ""},
		{"5 before 6: the disk, then the policy", opening, rootsParams(id, a, missing, denied), []string{"additionalDirectories[0] missing"}, ""},
		{"5: all of the disk", opening, rootsParams(id, a, missing, file), []string{"additionalDirectories[0] missing", "additionalDirectories[1] not_directory"}, ""},
		{"6: all of the policy, by the real paths", opening, rootsParams(id, a, denied, link), []string{"additionalDirectories[0] denied", "additionalDirectories[1] denied"}, ""},
	} {
		for _, method := range step.methods {
			t.Run(step.name+"/"+method, func(t *testing.T) {
				m := c.try(method, step.params)
				if step.reason != "" {
					require.Equal(t, step.reason, m.reason(t))
					require.Equal(t, -32002, m.Error.Code)
					return
				}
				require.Equal(t, step.violations, m.findings(t))
				require.Equal(t, jsonrpc.CodeInvalidParams, m.Error.Code)
			})
		}
	}
	require.Equal(t, before, string(c.call("session/list", `{}`)))
	require.Len(t, r.noted(), 1, "only the session that was made")
}

// An error about a session's state has a reason and no violations, and names the session.
func TestA5_AStateIsToldWithoutViolations(t *testing.T) {
	c := connect(t, acp.Options{})
	c.initialize()
	id := c.open(folder(t))
	prompt, line := c.request("session/prompt", promptParams(id, "wait"))
	c.send(line)
	c.await(0, said("waiting"))
	m := c.try("session/prompt", promptParams(id, "say x"))
	require.JSONEq(t, `{"reason":"turn_in_progress","sessionId":"`+id+`"}`, string(m.Error.Data))
	require.Equal(t, jsonrpc.CodeInvalidRequest, m.Error.Code)
	c.call("session/close", idParams(id))
	c.response(prompt)
	for _, method := range []string{"session/prompt", "session/set_mode", "session/set_config_option"} {
		m = c.try(method, promptParams(id, "say x"))
		require.JSONEq(t, `{"reason":"not_active","sessionId":"`+id+`"}`, string(m.Error.Data), method)
		require.Equal(t, -32002, m.Error.Code)
		require.Contains(t, m.Error.Message, "load or resume it first")
	}
}
