//go:build unix

package interop

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/conform/rawrpc"
	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/interop/modelserver"
	"github.com/acp-agent/acp-agent/internal/test/interop/scripted"
	"github.com/acp-agent/acp-agent/internal/test/proctest"
)

// keeping is a server with the agent "keeper", which has one home for all users.
type keeping struct {
	*server
	home, audit, config, team string
}

// startKeeping starts such a server. capabilities are further ones of the agent, and grants what
// the configuration lets the users use of it.
func startKeeping(t *testing.T, capabilities string, grants ...string) keeping {
	t.Helper()
	k := keeping{home: t.TempDir(), audit: filepath.Join(t.TempDir(), "audit"), team: folder(t)}
	env := map[string]string{scripted.KeeperDir: k.home, scripted.KeeperCapabilities: capabilities}
	for _, pair := range proctest.Env("keeper") {
		name, value, _ := strings.Cut(pair, "=")
		env[name] = value
	}
	k.config = configFile(t, map[string]any{"agents": map[string]any{"keeper": map[string]any{
		"command": proctest.Executable(), "env": env, "remoteUsers": grants}}})
	k.server = startServer(t, "--config", k.config, "--agent", "keeper", "--audit", k.audit)
	return k
}

// user connects a user who may open folders in the one of the team, and in others.
func (k keeping) user(name string, others ...string) *agent {
	k.t.Helper()
	args := []string{"add", name, "--within", k.team}
	for _, dir := range others {
		args = append(args, "--within", dir)
	}
	return k.connect(k.tokens(args...)).initialize()
}

// raw returns the agent's own ids.
func (k keeping) raw() (ids []string) {
	k.t.Helper()
	paths, err := filepath.Glob(filepath.Join(k.home, "raw-*.json"))
	require.NoError(k.t, err)
	for _, path := range paths {
		ids = append(ids, strings.TrimSuffix(filepath.Base(path), ".json"))
	}
	return ids
}

// requests returns what was sent to the agent so far.
func (k keeping) requests() string {
	k.t.Helper()
	return dirtest.Read(k.t, filepath.Join(k.home, "requests"))
}

// The agents of a server list and open whatever is in their home, for whoever asks.
//
// Clauses N1, N4, N5.
func TestUsersDoNotShareTheAgentsSessions(t *testing.T) {
	t.Parallel()
	for name, capabilities := range map[string]string{
		"lists": `,"list":{},"resume":{}`, "loads without listing": ``,
	} {
		t.Run("N5/"+name, func(t *testing.T) {
			t.Parallel()
			k := startKeeping(t, capabilities)
			anas := folder(t)
			ana, bob := k.user("ana", anas), k.user("bob")
			his := bob.open(k.team)
			require.Equal(t, "end_turn", bob.prompt(his, "my secret is tangerine"))
			theirs := append(k.raw(), his)
			require.Len(t, theirs, 2)

			before := len(k.requests())
			ana.reachesNothing(t, theirs, k.team, anas)
			for line := range strings.Lines(k.requests()[before:]) {
				require.Regexp(t, `^session/list {("cwd":"[^"]*",)?"archived":"include"}`, line)
			}
			for _, m := range ana.Messages() {
				require.NotContains(t, m.Raw, "tangerine")
			}
			audit := audited(t, k.audit)
			for _, method := range []string{"logout", "providers/set", "session/export"} {
				require.Contains(t, audit, `"msg":"refused a message to the agent","user":"ana","method":"`+method+`"`)
			}
			ana.usesHerOwn(t, anas)
			if capabilities != "" { // from the agent's list, which has no title of others
				ana.awaitTitles(t, "title: hello; there")
			}
			require.Len(t, bob.list(nil), 1)
			require.Contains(t, bob.says(his, "again"), "sent: my secret is tangerine; again")
		})
	}
}

// reachesNothing tries everything with the ids of sessions of another user.
func (a *agent) reachesNothing(t *testing.T, theirs []string, dirs ...string) {
	t.Helper()
	require.Empty(t, a.list(nil))
	require.Empty(t, a.list(map[string]any{"cwd": dirs[0]}))
	for _, id := range theirs {
		for _, dir := range dirs {
			for _, method := range []string{"session/load", "session/resume", "session/fork",
				"session/archive", "session/unarchive", "session/set_title", "session/status",
				"session/prompt", "session/set_mode", "session/set_model", "session/export",
				"_session/batch_get", "authenticate", "logout", "providers/set", "auth/status"} {
				m := a.try(method, map[string]any{"sessionId": id, "sessionIds": []any{id}, "cwd": dir,
					"mcpServers": []any{}, "title": "x", "prompt": []any{}})
				require.NotNil(t, m.Error, "%s of %s", method, id)
			}
			a.call("session/delete", sessionParams(id), nil)
			a.call("session/close", sessionParams(id), nil)
			a.send(rawrpc.Notification("_forget", sessionParams(id)), rawrpc.Notification("session/cancel", sessionParams(id)))
		}
	}
	for _, method := range []string{"session/options", "session/new", "_x/new"} {
		m := a.try(method, map[string]any{"cwd": "/etc", "additionalDirectories": []any{"/root"}, "mcpServers": []any{}})
		require.NotNil(t, m.Error, method)
	}
}

// usesHerOwn does with an own session what reachesNothing tries.
func (a *agent) usesHerOwn(t *testing.T, dir string) {
	t.Helper()
	params := func(id string) map[string]any {
		return map[string]any{"sessionId": id, "cwd": dir, "mcpServers": []any{}, "title": "t"}
	}
	mine := a.open(dir)
	require.Contains(t, a.says(mine, "hello"), `"text":"sent: hello"`)
	var fork struct{ SessionID string }
	a.call("session/fork", params(mine), &fork)
	require.Len(t, a.list(nil), 2)
	for _, method := range []string{"session/load", "session/set_title", "session/status", "session/archive",
		"session/unarchive", "session/resume"} {
		a.call(method, params(mine), nil)
	}
	require.Contains(t, a.says(fork.SessionID, "there"), `"text":"sent: hello; there"`)
	a.call("session/delete", sessionParams(mine), nil)
	require.Len(t, a.list(nil), 1)
}

// awaitTitles waits until the listed sessions have these titles.
func (a *agent) awaitTitles(t *testing.T, titles ...string) {
	t.Helper()
	require.Eventually(t, func() bool {
		var result struct{ Sessions []struct{ Title string } }
		a.call("session/list", map[string]any{}, &result)
		var listed []string
		for _, s := range result.Sessions {
			listed = append(listed, s.Title)
		}
		return slices.Equal(titles, listed)
	}, patience, 100*time.Millisecond)
}

// An operator lets users have the agent's own sessions and its account.
//
// Clause N5.
func TestUsersMayUseTheAgentsSessions(t *testing.T) {
	t.Parallel()
	k := startKeeping(t, `,"list":{}`, "sessions", "account")
	ana, bob := k.user("ana"), k.user("bob")
	require.Equal(t, "end_turn", bob.prompt(bob.open(k.team), "tangerine"))
	require.Len(t, ana.list(nil), 1)
	from := ana.Count()
	ana.call("session/load", map[string]any{"sessionId": k.raw()[0], "cwd": k.team, "mcpServers": []any{}}, nil)
	require.Contains(t, ana.updates(from, k.raw()[0]), "replayed: tangerine")
	ana.call("logout", map[string]any{}, nil)
	require.Contains(t, k.requests(), "logout {}")
	require.NotNil(t, ana.try("_x", map[string]any{}).Error)
}

// What --deny of a token says holds for the files that the model reads, without a question.
//
// Clause R5.
func TestRulesOfTokens(t *testing.T) {
	t.Parallel()
	stage := onModelStage(t)
	s := startServer(t, "--config", filepath.Join(stage.dir, "config.json"), "--model", "local")
	team := folder(t, ".env", "KEY=hunter2\n", "open", "KEY=open\n")
	ana := s.connect(s.tokens("add", "ana", "--within", team, "--deny", "read **/.env")).initialize()
	id := ana.open(team)
	for _, order := range []modelserver.Order{
		modelserver.UseWith("read_file", `{"path":".env"}`),
		modelserver.UseWith("search", `{"pattern":"KEY","ignored":"include"}`),
		modelserver.UseWith("edit_file", `{"path":".env","old_text":"KEY","new_text":"K","dry_run":true}`),
	} {
		require.Equal(t, "end_turn", ana.prompt(id, modelserver.Prompt("Go.", order)))
	}
	var all string
	for _, r := range stage.model.Requests() {
		all += string(r.Body)
	}
	require.NotContains(t, all, "hunter2")
	require.Contains(t, all, "KEY=open")
	require.Contains(t, all, "denies it")
}
