package agents

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/internal/interop/modelserver"
)

const beginServers = "<!-- make interop-agents writes what follows of MCP servers -->\n"

// serversHeading is of what an agent does with a session's MCP servers, and when it says what commands it has.
var serversHeading = []string{"agent", "starts a session's MCP servers", "asks before it writes by their tools", "tells them", "with `rootsRelay`",
	"announces its commands at a load"}

// TestTheTableOfServers tries what the second table says, which takes minutes.
func TestTheTableOfServers(t *testing.T) {
	if !*survey {
		t.Skip("make interop-agents runs this")
	}
	var table strings.Builder
	table.WriteString(row(serversHeading) + row(slices.Repeat([]string{"---"}, len(serversHeading))))
	for _, s := range surveyed {
		ran := t.Run(s.name, func(t *testing.T) {
			cells := onStage(t, s).serverCells(t)
			t.Logf("\n%s", row(cells))
			table.WriteString(row(cells))
		})
		require.True(t, ran, "the table was not written: an agent could not be tried")
	}
	writeTable(t, beginServers, table.String())
}

// serverCells are an agent's row.
func (s *stage) serverCells(t *testing.T) []string {
	announces := s.announcesAnew(t)
	without, asks := s.rootsOf(t, s.behind(t, noFiles), 5)
	if without == "" {
		return []string{s.subject.name, "–", "", "", "", announces}
	}
	with, _ := s.rootsOf(t, s.relaying(t), 10)
	return []string{s.subject.name, "yes", map[bool]string{true: "yes", false: "–"}[asks], without, with, announces}
}

// rootsOf says which roots a session's server was told, and whether the agent asked before it wrote by its tools. It looks at
// most so often, since an agent may start the server later; "" is for one that does not start it.
func (s *stage) rootsOf(t *testing.T, e *editor, looks int) (says string, asks bool) {
	defer e.leave()
	made, err := e.NewSession(within(t), s.withServer(t, s.first, s.second))
	require.NoError(t, err)
	for range looks {
		if roots, ok := s.serverRoots(e, made.ID); ok {
			says = s.inWords(roots)
		}
		if says == allFolders {
			break
		}
	}
	_, used := s.use(e, made.ID, modelserver.Use("create_directory", filepath.Join(s.cwd, "basket")))
	require.Equal(t, says != "", used)
	return says, strings.Contains(e.permissions(), "create_directory")
}

const allFolders = "all folders"

// inWords says which of the session's folders the roots of its server are.
func (s *stage) inWords(roots []string) string {
	switch all := []string{s.cwd, s.first, s.second}; {
	case len(roots) == 0:
		return "none"
	case slices.Equal(roots, all[:1]):
		return "the working directory"
	case slices.Equal(roots, all):
		return allFolders
	}
	return strings.Join(roots, " ")
}

// announcesAnew says whether another process of the agent announces its slash commands when it loads a session.
func (s *stage) announcesAnew(t *testing.T) string {
	e := s.behind(t, noFiles)
	made, err := e.NewSession(within(t), client.Setup{Roots: s.roots(t)})
	require.NoError(t, err)
	s.prompt(e, made.ID, asked, modelserver.Say(answered))
	announced := s.announced(e, made.ID)
	e.leave()
	if !announced {
		return "has none"
	}
	e = s.behind(t, noFiles)
	defer e.leave()
	_, err = e.LoadSession(within(t), made.ID, client.Setup{Roots: s.roots(t)})
	require.NoError(t, err)
	return map[bool]string{true: "yes", false: "–"}[s.announced(e, made.ID)]
}

// announced reports whether the client is told of slash commands within some seconds.
func (s *stage) announced(e *editor, session string) bool {
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if strings.Contains(e.heard(session), "available_commands_update") {
			return true
		}
	}
	return false
}
