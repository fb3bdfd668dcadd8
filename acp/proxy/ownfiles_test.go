package proxy_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/proxy"
	"github.com/acp-agent/acp-agent/acp/proxy/profiles"
	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/workspace"
)

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

	script, id := plain+opened, 10
	ask := func(method, path, more string) {
		id++
		script += fmt.Sprintf(
			`send {"jsonrpc":"2.0","id":%d,"method":"fs/%s_text_file",`+
				`"params":{"sessionId":"child-1","path":%s%s}}`+"\nawait reply %[1]d\n",
			id, method, strconv.Quote(path), more)
	}
	cases := []struct{ method, path, more, answer string }{
		{"read", own("state/output"), "", `"result":{"content":"one\ntwo\nthree\n"}`},
		{"read", output, `,"line":2,"limit":1`, `"result":{"content":"two\n"}`},
		{"read", inTemp, "", `"result":{"content":"temporary\n"}`},
		{"write", own("state/new"), `,"content":"written"`, `"result":{}`},
		{"write", filepath.Join(filepath.Dir(inTemp), "new"), `,"content":"written"`,
			`"result":{}`},
		{"write", own("state/nothing"), "",
			`"message":"acp-agent refused fs/write_text_file: content is missing`},
		{"read", own("state/missing"), "", `"error":{"code":-32002`},
		{"read", own("state/link"), "", `is outside the session's folders`},
		{"read", own("state/dir/secret"), "", `is outside the session's folders`},
		{"write", own("state/link"), `,"content":"written"`, `is outside the session's folders`},
		{"write", own("state/dir/new"), `,"content":"written"`, `is outside the session's folders`},
		{"read", own("state/adapter/sessions.db"), "", `denied`},
		{"write", own("state/adapter/sessions.db"), `,"content":"written"`, `denied`},
		{"read", own("replaced/file"), "", `acp-agent refused fs/read_text_file: `},
		// The rest is checked against the session's roots and passed on.
		{"read", own("state") + "/../../secret", "", `method not found`},
		{"read", secret, "", `method not found`},
		{"read", own("state"), "", `method not found`},
		{"write", own("settings"), `,"content":"written"`, `method not found`},
		{"read", filepath.Join(project, "file"), "", `method not found`},
	}
	for _, c := range cases {
		ask(c.method, c.path, c.more)
	}
	b := initialized(t, script+"send "+fmt.Sprintf(update, `{"temp":"$env:TMPDIR$"}`),
		proxy.Options{
			Profile:   profiles.Profile{Name: "mine", State: profiles.State{OwnDirs: []string{"$AGENT_HOME/state", "$AGENT_HOME/replaced", "$UNSET/x"}, OwnTemp: true}},
			Workspace: workspace.Options{Policy: workspace.Policy{Deny: []workspace.Dir{denied}}},
		})
	b.openWith(`{"cwd":` + strconv.Quote(project) + `,"mcpServers":[]}`)
	for _, c := range cases {
		if c.answer == "method not found" {
			require.Equal(t, fmt.Sprintf(`host call fs/%s_text_file {"path":%s%s}`, c.method,
				strconv.Quote(c.path), c.more), b.client.next())
		}
	}
	require.Equal(t, `host update {"update":{"temp":"`+filepath.Join(base, temp)+`"}}`,
		b.client.next(), "its temporary directory")
	answers := b.received("")
	require.Len(t, answers, len(cases))
	for i, c := range cases {
		require.Contains(t, answers[i], c.answer, "%s %s", c.method, c.path)
		require.NotContains(t, answers[i], "s3cret")
	}
	require.Equal(t, "written", content("home/state/new"))
	require.Equal(t, "written", content(temp+"/new"))
	require.Equal(t, "s3cret\n", content("secret"))
	require.Equal(t, "s3cret", content("home/state/adapter/sessions.db"))
	require.NoFileExists(t, filepath.Join(base, "new"))
	require.NoFileExists(t, filepath.Join(base, "home/state/nothing"))
}

// Clause P4.
func TestOwnTempOfTheUser(t *testing.T) {
	base := t.TempDir()
	t.Setenv("TMPDIR", base)
	c, record := command(t, plain+opened+"send "+fmt.Sprintf(update, `{"temp":"$env:TMPDIR$"}`)+
		fmt.Sprintf(`send {"jsonrpc":"2.0","id":1,"method":"fs/read_text_file",`+
			`"params":{"sessionId":"child-1","path":%s}}`, strconv.Quote(filepath.Join(base, "x"))))
	c.Env = append(c.Env, "TMPDIR="+filepath.Join(base, "chosen"))
	b := &proxyTest{t: t, command: c, client: newFakeClient(t), record: record,
		backend: proxy.New(c, proxy.Options{
			Profile: profiles.Profile{Name: "mine", State: profiles.State{OwnTemp: true}}}.WithProcessGrace(patience))}
	t.Cleanup(b.close)
	_, err := b.backend.Initialize(t.Context(), backend.Raw(`{"protocolVersion":1}`), b.client)
	require.NoError(t, err)
	b.open()
	require.Equal(t, `host update {"update":{"temp":"`+filepath.Join(base, "chosen")+`"}}`,
		b.client.next(), "a directory that the user chose is kept")
	require.Contains(t, b.client.next(), "host call fs/read_text_file",
		"and is not the agent's own")
}
