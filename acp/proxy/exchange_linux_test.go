package proxy_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/proctest"
	"github.com/acp-agent/acp-agent/internal/test/scripted"
	"github.com/acp-agent/acp-agent/workspace"
)

func exchange(dir string) int {
	const at = unix.AT_FDCWD
	d, l := filepath.Join(dir, "d"), filepath.Join(dir, "l")
	for i := 0; ; i++ {
		if err := unix.Renameat2(at, d, at, l, unix.RENAME_EXCHANGE); err != nil {
			return 89
		}
		if i == 0 && os.WriteFile(filepath.Join(dir, "begun"), nil, 0o600) != nil {
			return 88
		}
	}
}

// openingEditor opens the files that it is asked for by their paths, as every editor does.
func openingEditor(asked *atomic.Int32) client.Options {
	return client.Options{
		ReadTextFile: func(_ context.Context, r sdk.ReadTextFileRequest) (
			sdk.ReadTextFileResponse, error,
		) {
			asked.Add(1)
			text, err := os.ReadFile(r.Path)
			return sdk.ReadTextFileResponse{Content: string(text)}, err
		},
		WriteTextFile: func(_ context.Context, r sdk.WriteTextFileRequest) (
			sdk.WriteTextFileResponse, error,
		) {
			asked.Add(1)
			return sdk.WriteTextFileResponse{}, os.WriteFile(r.Path, []byte(r.Content), 0o600)
		},
		Permission: func(context.Context, sdk.RequestPermissionRequest) (
			sdk.RequestPermissionResponse, error,
		) {
			return sdk.RequestPermissionResponse{
				Outcome: sdk.NewRequestPermissionOutcomeCancelled()}, nil
		},
	}
}

// An agent in the sandbox that exchanges a folder for a link out of the session, while it asks the
// editor for a file in that folder, gets and changes nothing outside.
//
// Clauses X5, X8.
func TestExchangedFoldersInTheSandbox(t *testing.T) {
	proctest.AsOrdinaryUser(t, t.Name())
	const tries = 300
	for _, mode := range []backend.SandboxMode{backend.SandboxWrite, backend.SandboxStrict} {
		t.Run(mode.String(), func(t *testing.T) {
			root := dirtest.New(t, "d/x", "inside\n")
			out := dirtest.New(t, "x", "s3cret\n")
			require.NoError(t, os.Symlink(out, filepath.Join(root, "l")))
			script := plain + opened + "await session/prompt\nuntil " + filepath.Join(root, "begun") + "\n"
			for id := 10; id < 10+tries; id++ {
				method, more := "read", ""
				if id%3 == 0 {
					method, more = "write", `,"content":"inside\n"`
				}
				script += fmt.Sprintf(`send {"jsonrpc":"2.0","id":%d,"method":"fs/%s_text_file",`+
					`"params":{"sessionId":"child-1","path":%s%s}}`+"\nawait reply %[1]d\n",
					id, method, strconv.Quote(filepath.Join(root, "d/x")), more)
			}

			h := sandboxed(t, backend.Sandbox{Mode: mode})
			agent, record := scripted.Command(t, script+answered)
			h.record = record
			h.options.Profile.Sandbox.Write = append(h.options.Profile.Sandbox.Write,
				filepath.Dir(string(record)))
			h.command.Args = []string{"-c",
				proctest.Role + "=" + exchangeRole + ` "$0" & exec "$0"`, agent.Path}
			h.command.Env = append(agent.Env, exchangeVariable+"="+root, "TMPDIR="+t.TempDir())
			var asked atomic.Int32
			h.client = openingEditor(&asked)
			v := h.connect()
			roots, err := workspace.NewRoots(root, nil)
			require.NoError(t, err)
			s := v.open(roots)
			_, err = v.Prompt(t.Context(), s.ID, sdk.TextBlock("go"))
			require.NoError(t, err)
			v.disconnect()

			served := 0
			answers := linesOf(t, h.record, "")
			require.Len(t, answers, tries)
			for _, answer := range answers {
				require.NotContains(t, answer, "s3cret")
				if strings.Contains(answer, `"result"`) {
					served++
				}
			}
			require.Positive(t, served)
			require.Zero(t, asked.Load(), "the editor opens what is there by then")
			text, err := os.ReadFile(filepath.Join(out, "x"))
			require.NoError(t, err)
			require.Equal(t, "s3cret\n", string(text))
		})
	}
}
