package found_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/servers/found"
	"github.com/acp-agent/acp-agent/acp/mcp"
	"github.com/acp-agent/acp-agent/internal/mcp/mcpclient"
	"github.com/acp-agent/acp-agent/internal/permission/consent"
	"github.com/acp-agent/acp-agent/internal/test/roottest"
	"github.com/acp-agent/acp-agent/workspace"
)

func server(t testing.TB, change func(*found.Server)) found.Server {
	t.Helper()
	root, err := workspace.ParseDir(t.TempDir())
	require.NoError(t, err)
	x := found.Server{Root: root, File: filepath.Join(root.String(), ".mcp.json"), Config: mcpclient.Config{
		Name: "db", Transport: mcp.Stdio, Command: "sh", Args: []string{"-c", strings.Repeat("long ", 500) + "\u202egnp.exe\n; end"},
		Env: []mcpclient.Pair{{Name: "TOKEN", Value: "hunter2"}, {Name: "A", Value: "b"}},
	}}
	if change != nil {
		change(&x)
	}
	return x
}

// Clause A25.
func TestAskShowsWholeCommand(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state", "mcp")
	consents := consent.NewStore(dir)
	x, h := server(t, nil), &client{}
	require.NoError(t, ask(t, x, h, consents))
	require.Len(t, h.asked, 1)
	shown := string(h.asked[0])
	require.Contains(t, shown, strings.Repeat("long ", 500))
	require.Contains(t, shown, `\\u202egnp.exe\\n; end`)
	require.Contains(t, shown, "TOKEN")
	require.NotContains(t, shown, "hunter2")
	_, err := os.Stat(dir)
	require.ErrorIs(t, err, os.ErrNotExist, "once is not remembered")

	h.answer = "reject-once"
	require.ErrorIs(t, ask(t, x, h, consents), backend.ErrRejected)
	h.answer = "allow-always"
	require.NoError(t, ask(t, x, h, consents))
	h.answer = "reject-once"
	require.NoError(t, ask(t, x, h, consent.NewStore(dir)), "remembered")
	require.Len(t, h.asked, 3)
	require.NoError(t, consents.Forget(x.ID()))
	require.NoError(t, consents.Forget(x.ID()))
	require.ErrorIs(t, ask(t, x, h, consents), backend.ErrRejected)
}

// Clause A25.
func TestChangedServerNeedsNewConsent(t *testing.T) {
	consents := consent.NewStore(t.TempDir())
	x := server(t, nil)
	require.NoError(t, consents.Allow(found.Consent(x)))
	allowed, err := consents.Has(x.ID())
	require.NoError(t, err)
	require.True(t, allowed)
	for what, change := range map[string]func(*found.Server){
		"root":      func(x *found.Server) { x.Root = server(t, nil).Root },
		"name":      func(x *found.Server) { x.Config.Name = "other" },
		"command":   func(x *found.Server) { x.Config.Command = "bash" },
		"arguments": func(x *found.Server) { x.Config.Args = []string{"-c"} },
		"split":     func(x *found.Server) { x.Config.Args = []string{"-c " + x.Config.Args[1]} },
		"env":       func(x *found.Server) { x.Config.Env = x.Config.Env[:1] },
		"value": func(x *found.Server) {
			x.Config.Env = []mcpclient.Pair{x.Config.Env[0], {Name: "TOKEN", Value: "new"}}
		},
		"folder":    func(x *found.Server) { x.Config.Dir = "/elsewhere" },
		"transport": func(x *found.Server) { x.Config.Transport = mcp.HTTP },
		"url":       func(x *found.Server) { x.Config.URL = "http://localhost" },
		"headers":   func(x *found.Server) { x.Config.Headers = []mcpclient.Pair{{Name: "A"}} },
	} {
		other := x
		change(&other)
		allowed, err := consents.Has(other.ID())
		require.NoError(t, err)
		require.False(t, allowed, what)
	}
}

// Clause A25.
func TestShowsAllValuesButCredentials(t *testing.T) {
	for _, name := range []string{
		"BASH_FUNC_echo%%", "BASH_FUNC_my_token%%", "BASH_FUNC_password()", "BASH_ENV", "OPENSSL_CONF", "MAKEFLAGS", "NODE_OPTIONS", "GIT_CONFIG_KEY_0",
		"GIT_ASKPASS", "SSH_ASKPASS", "LESSOPEN", "LESSKEY", "PROMPT_COMMAND", "PS4", "PWD", "OLDPWD", "VIMINIT", "TERMINFO", "GCONV_PATH", "PYTHONSTARTUP",
		"GOOGLE_APPLICATION_CREDENTIALS", "AWS_SHARED_CREDENTIALS_FILE", "CARGO_REGISTRY_CREDENTIAL_PROVIDER", "TOKEN_HELPER", "A",
	} {
		x := server(t, func(x *found.Server) {
			x.Config.Env = []mcpclient.Pair{{Name: name, Value: "() { evil; } \u200b"}}
		})
		require.Contains(t, asked(t, x), "Environment: \""+name+`=() { evil; } \u200b"`+"\n", name)
	}
	for _, name := range []string{
		"TOKEN", "NODE_AUTH_TOKEN", "authToken", "PGPASSWORD", "DB_PASSWD", "MYSQL_PWD", "API_KEY", "apiKey", "OPENAI_KEY", "AWS_SECRET_ACCESS_KEY",
		"CLIENT_SECRET", "SSH_PASSPHRASE", "GITHUB_PAT", "npm_config__auth",
	} {
		x := server(t, func(x *found.Server) { x.Config.Env = []mcpclient.Pair{{Name: name, Value: "hunter2"}} })
		text := asked(t, x)
		require.Contains(t, text, "Environment: \""+name+"\", hidden, 7 bytes\n", name)
		require.NotContains(t, text, "hunter2")
	}
	for _, name := range []string{"Authorization", "X-Api-Key", "Cookie"} {
		x := server(t, func(x *found.Server) {
			x.Config = mcpclient.Config{Name: "r", Transport: mcp.HTTP, URL: "https://example.com",
				Headers: []mcpclient.Pair{{Name: name, Value: "hunter2"}, {Name: "Accept", Value: "text/plain"}}}
		})
		text := asked(t, x)
		require.Contains(t, text, "Header: \""+name+"\", hidden, 7 bytes\nHeader: \"Accept: text/plain\"\n")
	}
}

// A value can be code in spite of its name if something else runs it.
//
// Clause A25.
func TestShowsCredentialsThatAreMentioned(t *testing.T) {
	for what, change := range map[string]func(*mcpclient.Config){
		"argument": func(c *mcpclient.Config) { c.Args = []string{"-c", "eval \"$X_TOKEN\""} },
		"command":  func(c *mcpclient.Config) { c.Command = "./%X_TOKEN%" },
		"variable": func(c *mcpclient.Config) { c.Env = append(c.Env, mcpclient.Pair{Name: "BASH_ENV", Value: "$X_TOKEN"}) },
	} {
		x := server(t, func(x *found.Server) {
			x.Config.Env = []mcpclient.Pair{{Name: "X_TOKEN", Value: "$(touch /tmp/evil)"}}
			change(&x.Config)
		})
		require.Contains(t, asked(t, x), `"X_TOKEN=$(touch /tmp/evil)"`, what)
	}
}

// Clause A25.
func TestShowsWhatVariablesInCommandAre(t *testing.T) {
	t.Setenv("ACP_TEST_TOOL", "/opt/evil\n\u200b")
	t.Setenv("ACP_TEST_TOKEN", "hunter2$")
	t.Setenv("ACP_TEST_DSN", "postgres://me:hunter2@db/x")
	x := server(t, func(x *found.Server) {
		x.Config.Command = "${ACP_TEST_TOOL}"
		x.Config.Args = []string{"${ACP_TEST_UNSET:-./evil.sh}", "--token=${env:ACP_TEST_TOKEN}", "${ACP_TEST_DSN}", "${workspaceFolder}/x"}
		x.Config.Env = []mcpclient.Pair{{Name: "HOST", Value: "${ACP_TEST_DSN}"}}
	})
	require.NoError(t, x.Expand("/folder"))
	text := asked(t, x)
	for _, line := range []string{
		`Command: "${ACP_TEST_TOOL}", where "${ACP_TEST_TOOL}" is "/opt/evil\n\u200b"`,
		`Argument 1: "${ACP_TEST_UNSET:-./evil.sh}", where "${ACP_TEST_UNSET:-./evil.sh}" is "./evil.sh"`,
		`Argument 2: "--token=${env:ACP_TEST_TOKEN}", where "${env:ACP_TEST_TOKEN}" is hidden, 8 bytes`,
		`Cannot be allowed permanently: a shell may decide which files argument 2 means`,
		`Argument 3: "${ACP_TEST_DSN}", where "${ACP_TEST_DSN}" is hidden, 26 bytes`,
		`Argument 4: "${workspaceFolder}/x", where "${workspaceFolder}" is "/folder"`,
		`Environment: "HOST=${ACP_TEST_DSN}", with "ACP_TEST_DSN" of your environment`,
	} {
		require.Contains(t, text, line+"\n")
	}
	require.NotContains(t, text, "hunter2")
	id := x.ID()
	require.NoError(t, x.Expand("/folder"))
	require.Equal(t, id, x.ID())
	t.Setenv("ACP_TEST_TOOL", "/opt/other")
	require.NoError(t, x.Expand("/folder"))
	require.NotEqual(t, id, x.ID(), "what was shown is no longer true")

	t.Setenv("ACP_TEST_URL", "https://me:hunter2@example.com/hunter2")
	x.Config = mcpclient.Config{Name: "r", Transport: mcp.HTTP, URL: "${ACP_TEST_URL}?x"}
	require.NoError(t, x.Expand("/folder"))
	text = asked(t, x)
	require.Contains(t, text, `URL: "${ACP_TEST_URL}?x", at "https://example.com"`+"\n")
	require.NotContains(t, text, "hunter2")
	id = x.ID()
	t.Setenv("ACP_TEST_URL", "https://example.org/hunter2")
	require.NoError(t, x.Expand("/folder"))
	require.NotEqual(t, id, x.ID(), "it leads elsewhere")
}

// Clause A25.
func TestSaysWhatEnvironmentIsInherited(t *testing.T) {
	if runtime.GOOS != "windows" {
		require.Contains(t, asked(t, server(t, nil)), "and of yours only HOME, LOGNAME, PATH, SHELL, TERM, USER.")
	}
}

// Clause A25.
func TestListConsents(t *testing.T) {
	dir := t.TempDir()
	consents := consent.NewStore(dir)
	all, err := consent.NewStore(filepath.Join(dir, "not there yet")).List()
	require.NoError(t, err)
	require.Empty(t, all)

	stdio := server(t, func(x *found.Server) { x.Config.Args = []string{"--token", "hunter2"} })
	remote := stdio
	remote.Config = mcpclient.Config{
		Name: "api", Transport: mcp.HTTP, URL: "https://me:hunter2@example.com:8443/hunter2?key=hunter2",
		Headers: []mcpclient.Pair{{Name: "Authorization", Value: "hunter2"}},
	}
	before := time.Now().Add(-time.Second)
	require.NoError(t, consents.Allow(found.Consent(stdio)))
	require.NoError(t, consents.Allow(found.Consent(remote)))

	all, err = consents.List()
	require.NoError(t, err)
	require.Len(t, all, 2)
	for _, one := range all {
		require.WithinRange(t, one.Allowed, before, time.Now())
	}
	all[0].Allowed, all[1].Allowed = time.Time{}, time.Time{}
	require.Equal(t, []consent.Consent{
		{ID: remote.ID(), Server: "api", Root: remote.Root, File: remote.File, Origin: "https://example.com:8443"},
		{ID: stdio.ID(), Server: "db", Root: stdio.Root, File: stdio.File, Command: "sh"},
	}, all)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 2)
	for _, e := range entries {
		content, err := os.ReadFile(filepath.Join(dir, e.Name()))
		require.NoError(t, err)
		require.NotContains(t, string(content), "hunter2")
		info, err := e.Info()
		require.NoError(t, err)
		require.True(t, runtime.GOOS == "windows" || info.Mode().Perm() == 0o600)
	}
}

// ask asks h about a server, in its root.
func ask(t *testing.T, x found.Server, h *client, known *consent.Store) error {
	t.Helper()
	_, err := x.Ask(t.Context(), h, known, roottest.Open(t, x.Root.String()))
	return err
}

// asked returns the text of the permission request for a server.
func asked(t *testing.T, x found.Server) string {
	t.Helper()
	h := &client{}
	require.NoError(t, ask(t, x, h, consent.NewStore("")))
	var q struct {
		ToolCall struct {
			Content []struct{ Content struct{ Text string } }
		}
	}
	require.NoError(t, json.Unmarshal(h.asked[0], &q))
	return q.ToolCall.Content[0].Content.Text
}

// Clients show the text as Markdown, in which a comment would be invisible.
//
// Clause A25.
func TestArgumentsCannotHide(t *testing.T) {
	x := server(t, func(x *found.Server) {
		x.Config.Args = []string{"<!--", "rm", "-->", "```", "![](http://example.com)"}
	})
	require.Regexp(t, "\n````\nFile: [^`]*(?s:.*)Argument 5: \"!.*\n(?s:.*)\n````$", asked(t, x))
}

// Clause A25.
func TestShowsEnvironmentReferences(t *testing.T) {
	x := server(t, func(x *found.Server) {
		x.Config = mcpclient.Config{Name: "r", Transport: mcp.HTTP, URL: "https://example.com",
			Headers: []mcpclient.Pair{{Name: "X-Token", Value: "hunter2 ${AWS_SECRET_ACCESS_KEY:-hunter2} ${env:HOME} ${workspaceFolder}"}}}
	})
	text := asked(t, x)
	require.Contains(t, text, `Header: "X-Token", hidden, 72 bytes, with "AWS_SECRET_ACCESS_KEY" and "HOME" of your environment`+"\n")
	require.NotContains(t, text, "hunter2")
	x = server(t, func(x *found.Server) {
		x.Config.Env = []mcpclient.Pair{{Name: "GIT_CONFIG_KEY_0", Value: "core.fsmonitor"}, {Name: "HOME", Value: "/repo/home"}}
	})
	require.Contains(t, asked(t, x), `"GIT_CONFIG_KEY_0=core.fsmonitor"`)
	require.Contains(t, asked(t, x), `"HOME=/repo/home"`)
}

// answered returns how Ask ended, and whether the user was asked, and could choose to always allow
// it.
func answered(t *testing.T, c *consent.Store, w *workspace.Workspace, x found.Server) (question string, err error) {
	t.Helper()
	h := &client{}
	h.answer = "allow-always"
	_, err = x.Ask(t.Context(), h, c, w)
	if len(h.asked) > 0 {
		question = string(h.asked[0])
	}
	return question, err
}

// Clause A25.
func TestAskedAboutWhatLiesInAFolder(t *testing.T) {
	for what, change := range map[string]func(*mcpclient.Config){
		"command":       func(c *mcpclient.Config) { c.Command = "./srv.sh" },
		"absolute":      func(c *mcpclient.Config) { c.Command = "${workspaceFolder}/srv.sh" },
		"name":          func(c *mcpclient.Config) { c.Args = []string{"srv.sh"} },
		"option":        func(c *mcpclient.Config) { c.Args = []string{"--require=./srv.sh"} },
		"short option":  func(c *mcpclient.Config) { c.Args = []string{"-r./srv.sh"} },
		"shell command": func(c *mcpclient.Config) { c.Args = []string{"-c", "exec './srv.sh' --x; true"} },
		"variable":      func(c *mcpclient.Config) { c.Args = []string{"${ACP_TEST_UNSET:-sub/../srv.sh}"} },
		"environment": func(c *mcpclient.Config) {
			c.Env = []mcpclient.Pair{{Name: "NODE_OPTIONS", Value: "--require ./srv.sh"}}
		},
		"PATH": func(c *mcpclient.Config) { c.Command = "srv.sh" },
	} {
		t.Run(what, func(t *testing.T) {
			dir := folder(t, "srv.sh", "#!/bin/sh\n", "sub/x", "")
			require.NoError(t, os.Chmod(filepath.Join(dir, "srv.sh"), 0o700))
			t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
			x := server(t, func(x *found.Server) {
				x.Config = mcpclient.Config{Name: "db", Transport: mcp.Stdio, Command: "sh", Dir: dir}
				change(&x.Config)
			})
			require.NoError(t, x.Expand(dir))
			w, c := roottest.Open(t, dir), consent.NewStore(t.TempDir())
			for range 2 {
				question, err := answered(t, c, w, x)
				require.ErrorIs(t, err, backend.ErrRejected, "there is no such answer")
				require.Contains(t, question, "srv.sh\\\" lies in a folder")
				require.NotContains(t, question, "allow_always")
			}
		})
	}
}

// What an agent may have changed after the question is not started. What lies in no folder is
// always started again.
//
// Clause A25.
func TestStartsOnceWhatLiesInAFolder(t *testing.T) {
	dir := folder(t, "srv.sh", "")
	w, consents := roottest.Open(t, dir), consent.NewStore("")
	config := func(command string) func(*found.Server) {
		return func(x *found.Server) {
			x.Config = mcpclient.Config{Name: "db", Transport: mcp.Stdio, Command: command, Dir: dir}
		}
	}
	local := server(t, config("./srv.sh"))
	require.NoError(t, local.Expand(dir))
	first, err := local.Ask(t.Context(), &client{}, consents, w)
	require.NoError(t, err)
	require.NoError(t, first.Check(w))
	require.ErrorContains(t, first.Check(w), "start it again")
	second, err := local.Ask(t.Context(), &client{}, consents, w)
	require.NoError(t, err)
	require.NoError(t, second.Check(w))
	require.NotEqual(t, first.Asked, second.Asked, "it is another start")
	require.Equal(t, first.Consent, second.Consent)

	installed := server(t, config("later.sh"))
	require.NoError(t, installed.Expand(dir))
	start, err := installed.Ask(t.Context(), &client{}, consents, w)
	require.NoError(t, err)
	for range 2 {
		require.NoError(t, start.Check(w))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "later.sh"), nil, 0o700))
	require.ErrorContains(t, start.Check(w), "lies in a folder")
}

// Clause A25.
func TestNoLastingConsentForWhatCannotBeCovered(t *testing.T) {
	outside := folder(t, "srv.sh", "")
	for what, command := range map[string]string{
		"link": "./link", "shell variable": "\"$PWD\"/srv.sh", "substitution": "`ls`", "pattern": "./*.sh", "directory": "cd sub && ./srv.sh",
	} {
		dir := folder(t, "sub/srv.sh", "")
		require.NoError(t, os.Symlink(filepath.Join(outside, "srv.sh"), filepath.Join(dir, "link")))
		x := server(t, func(x *found.Server) {
			x.Config = mcpclient.Config{Name: "db", Transport: mcp.Stdio, Command: "sh", Args: []string{"-c", command}, Dir: dir}
		})
		require.NoError(t, x.Expand(dir))
		consents := consent.NewStore(t.TempDir())
		require.NoError(t, consents.Allow(found.Consent(x)), "by an older version")
		question, err := answered(t, consents, roottest.Open(t, dir), x)
		require.ErrorIs(t, err, backend.ErrRejected, what)
		require.NotContains(t, question, "allow_always", what)
		require.Contains(t, question, "Cannot be allowed permanently: ", what)
	}
}
