package model

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/internal/test/dirtest"
)

// Other packages know the commands of this one by a table.
func TestOwnCommandsAreInTheTable(t *testing.T) {
	names := backend.AdapterCommands()
	for _, c := range ownCommands() {
		names = append(names, c.Name)
	}
	require.ElementsMatch(t, backend.OwnCommands(Kind), names)
}

func TestHelp(t *testing.T) {
	root := dirtest.New(t, ".claude/commands/deploy.md", "Deploy it.")
	said := open(t, setup{roots: []string{root}}).prompt("/help").text()
	for _, command := range []string{"/compact", "/undo", "/model", "/help", "/roots", "/mcp",
		"/deploy"} {
		require.Contains(t, said, command)
	}
}

func TestModelCommand(t *testing.T) {
	e := open(t, setup{})
	e.setup.more = []Model{{ID: "other", BaseURL: e.model.URL() + "/v1", Name: "scripted",
		ContextTokens: 1000}}
	e.stop()
	e.connect()
	session, err := e.client.NewSession(t.Context(), client.Setup{Roots: e.lifecycle().Roots})
	require.NoError(t, err)
	e.id = session.ID
	said := e.prompt("/model").text()
	require.Regexp(t, "`local`.*answers now", said)
	require.Contains(t, said, "`other`, called `scripted` by its server\n")
	r := e.prompt("/model none")
	require.Contains(t, r.text(), "There is no model `none`.")
	require.Contains(t, string(r.result), `"failed":true`)
	r = e.prompt("/model other")
	require.Contains(t, r.text(), "The model `other` answers from now on.")
	require.Len(t, r.of("config_option_update"), 1)
	e.restart()
	require.Regexp(t, "`other`.*answers now", e.prompt("/model").text())
}
