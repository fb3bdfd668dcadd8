package agents

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/acp/proxy/profiles"
	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/internal/test/interop/modelserver"
	"github.com/acp-agent/acp-agent/internal/test/interop/program"
)

// Real agents do their work in the sandbox. Neither their shells nor the editor write anywhere else
// for them.
func TestRealAgentsInTheSandbox(t *testing.T) {
	t.Parallel()
	for _, s := range surveyed {
		for _, mode := range []string{"write", "strict"} {
			for offers, f := range map[string]files{"alone": noFiles, "with the editor": withTerminals} {
				t.Run(s.name+"/"+mode+"/"+offers, func(t *testing.T) {
					t.Parallel()
					if (mode == "write" || f == noFiles) && !*survey {
						t.Skip("make interop-agents runs this")
					}
					rarely(t, s)
					if s.name == codex.name {
						// Its own sandbox does not start in this one, and this mode goes without.
						s.env = append(slices.Clone(s.env), "INITIAL_AGENT_MODE=agent-full-access")
					}
					inSandbox(t, onStage(t, s), mode, f)
				})
			}
		}
	}
}

// inSandbox has an agent work in three roots and, after a restart, in others.
//
// Clauses X1, X3, X5.
func inSandbox(t *testing.T, s *stage, mode string, f files) {
	outside := folder(t, "banana\n")
	command := append([]string{program.Path(), "--state-dir", s.state, "--sandbox", mode, "--"},
		s.subject.command...)
	run := func(format string, args ...any) modelserver.Order {
		order := modelserver.Run(fmt.Sprintf(format, args...))
		if f == withTerminals {
			order = order.By(s.subject.by)
		}
		return order
	}
	e := s.open(t, f, command)
	made, err := e.NewSession(within(t), client.Setup{Roots: s.roots(t, s.first, s.second)})
	require.NoError(t, err)
	written := filepath.Join(s.first, "written")
	refused := filepath.Join(outside, "written")
	s.prompt(e, made.ID, "Please run this.",
		run("echo yes >%s; echo no >%s; true", written, refused), modelserver.Say("Done."))
	require.FileExists(t, written)
	require.NoFileExists(t, refused)
	require.Equal(t, f == withTerminals && s.subject.borrows, len(e.terminals.Asked()) > 0)
	s.prompt(e, made.ID, "Please write.", modelserver.Write(refused, "no").By(run("").Server), modelserver.Say("Done."))
	require.NoFileExists(t, refused, "its own tools and the editor write it neither")
	if s.subject.name == claude.name { // some show only their model why a command failed
		require.Contains(t, e.heard(made.ID), "The sandbox does not let the agent change `"+refused+"`")
	}
	turn := s.prompt(e, made.ID, "Please look.", run("cat %s || true", fruit(outside)), modelserver.Say("Looked."))
	seen := turn[len(turn)-1].Of(modelserver.Result)
	require.NotEmpty(t, seen)
	if mode == "strict" {
		require.NotContains(t, seen[len(seen)-1], "banana")
	} else {
		require.Contains(t, seen[len(seen)-1], "banana")
	}
	e.leave()

	e = s.open(t, f, command)
	_, err = e.LoadSession(within(t), made.ID, client.Setup{Roots: s.roots(t, outside)})
	require.NoError(t, err)
	turn = s.prompt(e, made.ID, "Please go on.", modelserver.Say("Yes."))
	require.Contains(t, turn[0].Text(), "Looked.", "it knows the conversation")
	added, lost := filepath.Join(outside, "added"), filepath.Join(s.first, "lost")
	s.prompt(e, made.ID, "Please run this.",
		run("echo yes >%s; echo no >%s; true", added, lost), modelserver.Say("Done."))
	require.FileExists(t, added, "a load with another folder may write there")
	require.NoFileExists(t, lost, "and not in one that it no longer has")
}

// Real agents work with a list of hosts that has only their model, through the proxy.
func TestRealAgentsWithAListOfHosts(t *testing.T) {
	t.Parallel()
	for _, s := range surveyed {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			rarely(t, s)
			if s.name == codex.name {
				s.env = append(slices.Clone(s.env), "INITIAL_AGENT_MODE=agent-full-access")
			}
			withHosts(t, s)
		})
	}
}

// withHosts has an agent take a turn with a model that it reaches only through the proxy, and look
// for others.
//
// Clause X7.
func withHosts(t *testing.T, s subject) {
	var model string
	st := onStageAt(t, s, func(url string) string {
		model = relayTo(t, strings.TrimPrefix(url, "http://"))
		return "http://" + model
	})
	known, ok := profiles.Match(profiles.Known(), process.Command{Path: s.command[0]})
	require.True(t, ok)
	settings, err := json.Marshal(map[string]any{"agents": map[string]any{known.Name: map[string]any{
		"sandbox": "write", "sandboxHosts": []string{model}}}})
	require.NoError(t, err)
	config := filepath.Join(st.home, "hosts.json")
	require.NoError(t, os.WriteFile(config, settings, 0o600))
	e := st.behind(t, noFiles, "--config", config)
	made, err := e.NewSession(within(t), client.Setup{Roots: st.roots(t, st.first)})
	require.NoError(t, err)
	report := filepath.Join(st.first, "report")
	st.prompt(e, made.ID, "Please run this.", modelserver.Run("cd "+st.first+
		"; curl -sS http://secret.example.com/ >report 2>&1"+
		"; curl -sS --noproxy '*' -m 20 "+st.model.URL()+"/direct >direct; true"), modelserver.Say("Done."))
	text, err := os.ReadFile(report)
	require.NoError(t, err)
	require.Contains(t, string(text), "does not allow secret.example.com:80")
	direct, err := os.ReadFile(filepath.Join(st.first, "direct"))
	require.NoError(t, err)
	require.Empty(t, direct)
	require.Contains(t, e.heard(made.ID), "The sandbox does not let the agent connect to "+
		"`secret.example.com:80`")
	_, err = e.Prompt(within(t), made.ID, sdk.TextBlock("/roots"))
	require.NoError(t, err)
	require.Contains(t, e.heard(made.ID), "only the hosts "+model)
}

// relayTo returns an address that is another way to a server of this machine.
func relayTo(t *testing.T, server string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.2:0")
	require.NoError(t, err)
	var running sync.WaitGroup
	t.Cleanup(func() {
		require.NoError(t, l.Close())
		running.Wait()
	})
	running.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				defer in.Close()
				out, err := net.Dial("tcp", server)
				if err != nil {
					return
				}
				defer out.Close()
				running.Go(func() {
					_, _ = io.Copy(out, in)
					_ = out.Close()
				})
				_, _ = io.Copy(in, out)
			})
		}
	})
	return l.Addr().String()
}
