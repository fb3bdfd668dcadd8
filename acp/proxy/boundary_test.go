package proxy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/acp/proxy"
	"github.com/acp-agent/acp-agent/sessionstore"
)

func TestP4_WhatTheAgentAsksForOutsideOfTheRootsNeverReachesTheClient(t *testing.T) {
	r := someRoots(t)
	outside := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(outside, "secret"), []byte("s"), 0o600))
	inside := filepath.Join(r.At(1).String(), "file")
	require.NoError(t, os.WriteFile(inside, []byte("f"), 0o600))
	ask := func(id int, method, member, path string) string {
		return fmt.Sprintf(`send {"jsonrpc":"2.0","id":%d,"method":%q,"params":{"sessionId":"child-1",%q:%s,"content":"","command":"c"}}`+"\nawait reply %[1]d\n",
			id, method, member, strconv.Quote(path))
	}
	c, record := command(t, capable+opened+"await session/prompt\n"+
		ask(11, "fs/read_text_file", "path", inside)+
		ask(12, "fs/read_text_file", "path", filepath.Join(outside, "secret"))+
		ask(13, "fs/read_text_file", "path", filepath.Join(inside, "..", "..", "x"))+
		ask(14, "fs/write_text_file", "path", filepath.Join(outside, "new"))+
		ask(15, "terminal/create", "cwd", outside)+
		`send {"jsonrpc":"2.0","id":16,"method":"fs/read_text_file","params":{"sessionId":"someone else's","path":`+strconv.Quote(inside)+`}}`+"\nawait reply 16\n"+
		answered)
	var asked []string
	cl := through(t, c, sessionstore.NewMemory(), client.Options{
		Capabilities: json.RawMessage(`{"terminal":true}`),
		ReadTextFile: func(_ context.Context, q sdk.ReadTextFileRequest) (sdk.ReadTextFileResponse, error) {
			asked = append(asked, string(q.SessionId)+" "+q.Path)
			return sdk.ReadTextFileResponse{Content: "f"}, nil
		},
		WriteTextFile: func(context.Context, sdk.WriteTextFileRequest) (sdk.WriteTextFileResponse, error) {
			asked = append(asked, "write")
			return sdk.WriteTextFileResponse{}, nil
		},
		Requests: map[string]func(context.Context, json.RawMessage) (json.RawMessage, error){
			"terminal/create": func(context.Context, json.RawMessage) (json.RawMessage, error) {
				asked = append(asked, "terminal")
				return json.RawMessage(`{}`), nil
			},
		},
	})
	s, err := cl.NewSession(t.Context(), client.Setup{Roots: r})
	require.NoError(t, err)
	_, err = cl.Prompt(t.Context(), s.ID, sdk.TextBlock("go"))
	require.NoError(t, err)
	require.Equal(t, []string{s.ID + " " + inside}, asked)
	answers := linesOf(t, record, "")
	require.Contains(t, answers[0], `"content":"f"`)
	for _, refused := range answers[1:6] {
		require.Contains(t, refused, `"code":-32602`)
	}
}

func TestA1_OursAndTheAgentsCapabilitiesTogether(t *testing.T) {
	for bits := range 1 << 3 {
		a := abilities{Load: bits&1 != 0, List: bits&2 != 0, Roots: bits&4 != 0}
		h := newHouse(t, a, proxy.Options{})
		v := h.enter()
		raw, err := v.Conn().Call(t.Context(), "initialize", json.RawMessage(`{"protocolVersion":1}`))()
		require.Error(t, err, "it was sent before")
		require.Nil(t, raw)
		agent := v.agent
		require.True(t, agent.Load && agent.Resume && agent.Fork && agent.List && agent.Close && agent.Delete && agent.AdditionalDirectories)
		require.True(t, agent.Prompt.Image, "only the agent can")
		require.False(t, agent.Prompt.Audio)
		require.False(t, agent.MCP.Http, "the agent connects the servers")
		require.Contains(t, string(agent.Raw), `"authMethods":[{"id":"key","name":"A key"}]`)
		require.Contains(t, string(agent.Raw), `"name":"simulated"`)
		v.leave()
		require.Contains(t, h.received()[1].params, `"clientCapabilities"`)
	}
}
