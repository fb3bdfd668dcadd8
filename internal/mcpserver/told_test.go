package mcpserver_test

import (
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/mcpserver"
	"github.com/acp-agent/acp-agent/internal/testutil/logtest"
)

func TestM7_RootsAreWarnedOfOnce(t *testing.T) {
	a := tree(t, map[string]string{"f": "in a"})
	log := &logtest.Text{}
	p := start(t, mcpserver.Options{Logger: log.Logger(slog.LevelInfo)})
	p.begin(withRoots)
	p.answer(p.question(), a)
	p.write(call(1, "read_file", `{"path":"f"}`))
	require.Contains(t, p.answerTo(1).text(), "in a")
	require.NotContains(t, log.String(), "deprecates", "that revision does not")
	for range 3 {
		p.callAnswered(2, "read_file", `{"path":"f"}`, rootsResult(a))
		require.Contains(t, p.answerTo(2).text(), "in a")
	}
	require.Equal(t, 1, strings.Count(log.String(), "which MCP deprecates"))
}

func TestM10_WhatIsLeftOutIsLogged(t *testing.T) {
	a := tree(t, map[string]string{"f": "in a"})
	log := &logtest.Text{}
	p := start(t, mcpserver.Options{Logger: log.Logger(slog.LevelInfo)})
	p.begin(withRoots)
	p.answerRaw(p.question(), `{"roots":[{"uri":"https://example.com/x"},{"uri":"`+dirURI(t, a+"/missing")+`"},{"uri":"`+dirURI(t, a)+`"}]}`)
	p.write(call(1, "read_file", `{"path":"f"}`))
	require.Contains(t, p.answerTo(1).text(), "in a")
	require.Equal(t, 2, strings.Count(log.String(), "left out"))
	require.Contains(t, log.String(), "https://example.com/x")
	require.Contains(t, log.String(), "no such directory")
}

func TestM10_AnErrorForAnAnswerClosesTheScope(t *testing.T) {
	a := tree(t, map[string]string{"f": "in a"})
	p := start(t, mcpserver.Options{})
	p.begin(withRoots)
	p.answer(p.question(), a)
	p.write(call(1, "read_file", `{"path":"f"}`))
	require.Contains(t, p.answerTo(1).text(), "in a")
	p.write(changed)
	refuse := func() {
		id, err := json.Marshal(p.question().ID)
		require.NoError(t, err)
		p.write(`{"jsonrpc":"2.0","id":` + string(id) + `,"error":{"code":-32603,"message":"not now"}}`)
	}
	refuse()
	p.write(call(2, "read_file", `{"path":"f"}`))
	refuse() // it is asked anew
	require.Contains(t, p.answerTo(2).text(), "error: No folder is accessible")
	p.write(changed)
	p.answer(p.question(), a)
	p.write(call(3, "read_file", `{"path":"f"}`))
	require.Contains(t, p.answerTo(3).text(), "in a")
}
