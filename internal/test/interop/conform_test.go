package interop

import (
	"context"
	"encoding/xml"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/interop/program"
	"github.com/acp-agent/acp-agent/internal/test/npmtest"
)

// Real clients are checked by conform --client, which each starts as an editor does. What is
// expected is what it says of them: the checks that it could try, and those that fail.
func TestClientsAreChecked(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		client, name string
		drive        func(t *testing.T, cwd, first, second string, command []string)
		untried      string
		failures     map[string]string
	}{
		{"acp-agent run", "acp-agent run", driveRun, "P3.load W6.client", nil},
		{"acpx", "acpx", driveAcpx, "P1.folders W6.client", nil},
		{"acp-factory, whose forks have no directory", "", driveFactory,
			"P1.folders W6.client", map[string]string{"P2.absolute": `"" is not absolute`}},
		{"the Go SDK", "", driveGoSDK, "P3.load", nil},
		{"the TypeScript SDK, by a client that chooses for the user", "interop", driveTypeScript,
			"", map[string]string{"W6.client": "it was answered with a result"}},
	} {
		t.Run(c.client, func(t *testing.T) {
			t.Parallel()
			report := filepath.Join(t.TempDir(), "report.xml")
			c.drive(t, folder(t), folder(t), folder(t),
				[]string{program.Path(), "conform", "--client", "--junit", report})
			raw := dirtest.Read(t, report)
			var suite struct {
				Name  string `xml:"name,attr"`
				Cases []struct {
					Name    string    `xml:"name,attr"`
					Failure *struct { // of a MUST
						Message string `xml:"message,attr"`
					} `xml:"failure"`
					Skipped *struct{} `xml:"skipped"`
				} `xml:"testcase"`
			}
			require.NoError(t, xml.Unmarshal([]byte(raw), &suite))
			require.Contains(t, suite.Name, c.name)
			var untried []string
			failures := map[string]string{}
			for _, check := range suite.Cases {
				id, _, _ := strings.Cut(check.Name, ":")
				if check.Failure != nil {
					failures[id] = check.Failure.Message
				} else if check.Skipped != nil {
					untried = append(untried, id)
				}
			}
			require.Equal(t, c.untried, strings.Join(untried, " "))
			require.Subset(t, failures, c.failures)
			require.Len(t, failures, len(c.failures), "%v", failures)
		})
	}
}

func driveRun(t *testing.T, cwd, first, _ string, command []string) {
	args := append([]string{"run", "--dir", first, "hello", "--"}, command...)
	run := exec.CommandContext(within(t), program.Path(), args...)
	run.Dir = cwd
	run.Env = append(os.Environ(), "XDG_STATE_HOME="+t.TempDir())
	said, err := run.Output()
	require.NoError(t, err)
	require.Contains(t, string(said), "✓ P1.folders")
}

func driveAcpx(t *testing.T, cwd, _, _ string, command []string) {
	a := acpxOn(t, t.TempDir(), cwd)
	a.command = strings.Join(command, " ")
	a.run("sessions", "new")
	require.Contains(t, a.run("prompt", "hello"), "✓ P3.load")
	a.run("sessions", "close") // it ends the agent
}

func driveFactory(t *testing.T, cwd, _, _ string, command []string) {
	packages := filepath.Dir(npmtest.File(t, "testdata/node-clients", "acp-factory"))
	args := append([]string{filepath.Join(filepath.Dir(packages), "factory.mjs"), cwd}, command...)
	require.NoError(t, exec.CommandContext(within(t), npmtest.Node(t), args...).Run())
}

func driveTypeScript(t *testing.T, cwd, first, second string, command []string) {
	packages(t)
	args := append([]string{"editor.mjs", os.DevNull, cwd, first, second, "--"}, command...)
	cmd := exec.CommandContext(within(t), npmtest.Node(t), args...)
	cmd.Dir, cmd.Env = node, append(os.Environ(), "BEHIND=[]")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

func driveGoSDK(t *testing.T, cwd, first, _ string, command []string) {
	cmd := exec.CommandContext(within(t), command[0], command[1:]...)
	in, out := startPiped(t, cmd)
	g := &canceller{gopher: gopher{t: t}}
	g.ClientSideConnection = sdk.NewClientSideConnection(g, in, out)
	_, err := g.Initialize(t.Context(), sdk.InitializeRequest{ProtocolVersion: sdk.ProtocolVersionNumber})
	require.NoError(t, err)
	made, err := g.NewSession(t.Context(), sdk.NewSessionRequest{
		Cwd: cwd, AdditionalDirectories: []string{first}, McpServers: []sdk.McpServer{}})
	require.NoError(t, err)
	for _, text := range []string{"hello", "ask"} {
		_, err = g.Prompt(t.Context(), sdk.PromptRequest{SessionId: made.SessionId, Prompt: []sdk.ContentBlock{sdk.TextBlock(text)}})
		require.NoError(t, err)
	}
	require.NoError(t, in.Close())
	<-g.Done()
	require.NoError(t, cmd.Wait())
}

// canceller is a client whose user stops the turn instead of answering.
type canceller struct{ gopher }

// RequestPermission implements sdk.Client.
func (c *canceller) RequestPermission(
	ctx context.Context, r sdk.RequestPermissionRequest,
) (sdk.RequestPermissionResponse, error) {
	cancelled := &sdk.RequestPermissionOutcomeCancelled{}
	return sdk.RequestPermissionResponse{Outcome: sdk.RequestPermissionOutcome{Cancelled: cancelled}},
		c.Cancel(ctx, sdk.CancelNotification{SessionId: r.SessionId})
}
