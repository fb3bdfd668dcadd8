package child

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/proxy/profiles"
	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/workspace"
)

// notified is a client that is sent the params of notifications.
type notified chan string

func (n notified) Notify(_ context.Context, _ string, params backend.Raw) error {
	n <- string(params)
	return nil
}

func (n notified) Call(context.Context, string, backend.Raw) backend.Work { return nil }

// An agent keeps long output of tools in its state directory, home/state, and in its temporary
// directory.
//
// Clauses P4, A26.
func TestOwnFiles(t *testing.T) {
	base := dirtest.Short(t)
	write := func(path, content string) string {
		path = filepath.Join(base, path)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	content := func(path string) string {
		text, err := os.ReadFile(filepath.Join(base, path))
		require.NoError(t, err)
		return string(text)
	}
	t.Setenv("TMPDIR", filepath.Join(base, "tmp"))
	t.Setenv("AGENT_HOME", filepath.Join(base, "link to home"))
	temp := fmt.Sprintf("tmp/acp-agent-%d/mine", os.Getuid())
	output, secret := write("home/state/output", "one\ntwo\nthree\n"), write("secret", "s3cret\n")
	inTemp := write(temp+"/output", "temporary\n")
	write("home/state/adapter/sessions.db", "s3cret")
	project := filepath.Dir(write("home/state/project/file", "f"))
	write("elsewhere/file", "s3cret")
	for link, to := range map[string]string{"link to home": "home",
		"home/state/link": "../../secret", "home/state/dir": "../..",
		"home/replaced": "../elsewhere"} {
		require.NoError(t, os.Symlink(to, filepath.Join(base, link)))
	}
	own := func(path string) string { return filepath.Join(base, "link to home", path) }
	denied, err := workspace.ParseDir(filepath.Join(base, "home/state/adapter"))
	require.NoError(t, err)

	cases := []struct{ method, path, more, answer string }{
		{"read", own("state/output"), "", `{"content":"one\ntwo\nthree\n"}`},
		{"read", output, `,"line":2,"limit":1`, `{"content":"two\n"}`},
		{"read", inTemp, "", `{"content":"temporary\n"}`},
		{"write", own("state/new"), `,"content":"written"`, `{}`},
		{"write", filepath.Join(filepath.Dir(inTemp), "new"), `,"content":"written"`,
			`{}`},
		{"write", own("state/nothing"), "",
			`acp-agent refused fs/write_text_file: content is missing`},
		{"read", own("state/missing"), "", `(-32002)`},
		{"read", own("state/link"), "", `is outside the session's folders`},
		{"read", own("state/dir/secret"), "", `is outside the session's folders`},
		{"write", own("state/link"), `,"content":"written"`, `is outside the session's folders`},
		{"write", own("state/dir/new"), `,"content":"written"`, `is outside the session's folders`},
		{"read", own("state/adapter/sessions.db"), "", `denied`},
		{"write", own("state/adapter/sessions.db"), `,"content":"written"`, `denied`},
		{"read", own("replaced/file"), "", `acp-agent refused fs/read_text_file: `},
		// The rest is not served here.
		{"read", own("state") + "/../../secret", "", ""},
		{"read", secret, "", ""},
		{"read", own("state"), "", ""},
		{"write", own("settings"), `,"content":"written"`, ""},
		{"read", filepath.Join(project, "file"), "", ""},
	}
	roots, err := workspace.NewRoots(project, nil)
	require.NoError(t, err)
	const script = plain +
		`send {"jsonrpc":"2.0","method":"_temp","params":{"temp":"$env:TMPDIR$"}}` + "\n"
	p := newProgram(t, script, Config{
		Profile: profiles.Profile{Name: "mine", State: profiles.State{
			OwnDirs: []string{"$AGENT_HOME/state", "$AGENT_HOME/replaced", "$UNSET/x"},
			OwnTemp: true}},
		Workspace: workspace.Options{Policy: workspace.Policy{Deny: []workspace.Dir{denied}}},
	})
	told := make(notified, 1)
	require.NoError(t, p.Initialize(t.Context(), initialize, told))
	agent, err := p.Main(t.Context())
	require.NoError(t, err)
	require.Equal(t, `{"temp":"`+filepath.Join(base, temp)+`"}`, <-told, "its temporary directory")
	for _, c := range cases {
		params := fmt.Sprintf(`{"path":%s%s}`, strconv.Quote(c.path), c.more)
		work, own := agent.OwnFile(t.Context(), roots, "fs/"+c.method+"_text_file",
			backend.Raw(params))
		require.Equal(t, c.answer != "", own, "%s %s", c.method, c.path)
		if !own {
			continue
		}
		result, err := work()
		answer := string(result)
		if err != nil {
			answer = err.Error()
		}
		require.Contains(t, answer, c.answer, "%s %s", c.method, c.path)
		require.NotContains(t, answer, "s3cret")
	}
	require.Equal(t, "written", content("home/state/new"))
	require.Equal(t, "written", content(temp+"/new"))
	require.Equal(t, "s3cret\n", content("secret"))
	require.Equal(t, "s3cret", content("home/state/adapter/sessions.db"))
	require.NoFileExists(t, filepath.Join(base, "new"))
	require.NoFileExists(t, filepath.Join(base, "home/state/nothing"))
}

// A temporary directory that the user chose is kept, and is not the agent's own.
//
// Clause P4.
func TestOwnTempOfTheUser(t *testing.T) {
	base := t.TempDir()
	t.Setenv("TMPDIR", base)
	o := Config{Profile: profiles.Profile{Name: "mine", State: profiles.State{OwnTemp: true}},
		Logger: slog.New(slog.DiscardHandler)}
	own := fmt.Sprintf("%s/acp-agent-%d/mine", base, os.Getuid())
	require.Equal(t, []string{"TMPDIR=" + own}, o.tempEnv())
	require.DirExists(t, own)
	require.Equal(t, own, o.ownDirs(profiles.Command{Env: o.tempEnv()})[0].path)

	o.Command.Env = []string{"TMPDIR=" + filepath.Join(base, "chosen")}
	require.Empty(t, o.tempEnv())
	require.Empty(t, o.ownDirs(o.Command))
}
