//go:build unix

package interop

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/needs"
)

// repository makes a repository with one commit, and returns it.
func repository(t *testing.T, files ...string) string {
	t.Helper()
	needs.Programs(t, "git")
	dir := folder(t, files...)
	gitIn(t, dir, "init", "-q")
	gitIn(t, dir, "add", ".")
	gitIn(t, dir, "commit", "-q", "--allow-empty", "-m", "One")
	return dir
}

// gitIn runs git in a directory, without the user's configuration.
func gitIn(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=u", "-c", "user.email=u@example.com"}, args...)...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	output, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", output)
}

// worktreeOf makes a worktree of a repository in a temporary folder, as editors do.
func worktreeOf(t *testing.T, repository string) string {
	t.Helper()
	dir := filepath.Join(folder(t), "tree")
	gitIn(t, repository, "worktree", "add", "-q", "--detach", dir)
	return dir
}

// plain is a shell script that serves as an agent without capabilities.
const plain = `
n=0
while IFS= read -r line; do
	id=${line#'{"jsonrpc":"2.0","id":'} id=${id%%,*}
	case $line in
	*'"method":"initialize"'*) r='{"protocolVersion":1,"agentCapabilities":{}}' ;;
	*'"method":"session/new"'*) n=$((n + 1)) r='{"sessionId":"its'$n'"}' ;;
	*) r='{"stopReason":"end_turn"}' ;;
	esac
	printf '%s\n' '{"jsonrpc":"2.0","id":'"$id"',"result":'"$r"'}'
done`

// An editor that starts and forks sessions in temporary worktrees of a declared folder has all of
// its folders in each, also in subfolders, whatever answers.
//
// Clause A38.
func TestEditorsWorktreesHaveDeclaredFolders(t *testing.T) {
	needs.Programs(t, "sh")
	model := onModelStage(t).model
	for name, args := range map[string][]string{
		"built-in":       {},
		"model":          {"--model", "local"},
		"capable agent":  behind(),
		"ordinary agent": {"--", "sh", "-c", plain},
		"serve":          nil,
	} {
		t.Run(name, func(t *testing.T) {
			app := repository(t, "app/sub/f", "of the worktree")
			dep := folder(t, "d", "")
			rel, err := filepath.Rel(filepath.Join(app, "app"), dep)
			require.NoError(t, err)
			settings := map[string]any{
				"workspaces": []any{map[string]any{"cwd": filepath.Join(app, "app"), "directories": []string{rel}}},
				"models":     map[string]any{"local": map[string]any{"baseURL": model.URL() + "/v1"}},
			}
			for _, omitted := range []string{"configured", "stored"} {
				settings["whenOmitted"] = omitted
				config := configFile(t, settings)
				var a *agent
				if args == nil {
					s := startServer(t, "--config", config)
					a = s.connect(s.tokens("add", "ana", "--within", filepath.Dir(app), "--within", filepath.Dir(dep),
						"--within", os.TempDir())).initialize()
				} else {
					a = start(t, append([]string{"--config", config}, args...)...).initialize()
				}
				source := a.open(filepath.Join(app, "app"))
				a.hasFolder(source, dep, "workspaces[0]")
				a.prompt(source, "hello")
				for _, below := range []string{"app", "app/sub"} {
					cwd := filepath.Join(worktreeOf(t, app), below)
					a.hasFolder(a.open(cwd), dep, "folders of "+filepath.Join(app, below)+", of which this is a worktree")
					var fork struct{ SessionID string }
					a.call("session/fork", map[string]any{"sessionId": source, "cwd": cwd, "mcpServers": []any{}}, &fork)
					a.hasFolder(fork.SessionID, dep, "workspaces[0]")
				}
				other := a.open(worktreeOf(t, repository(t, "app/f", "")))
				require.NotContains(t, a.shown(other), dep)
			}
		})
	}
}

// shown returns what /roots says in a session.
func (a *agent) shown(session string) string {
	a.t.Helper()
	return a.says(session, "/roots")
}

// hasFolder checks that /roots shows a folder, and where it comes from.
func (a *agent) hasFolder(session, dir, from string) {
	a.t.Helper()
	shown := a.shown(session)
	require.Contains(a.t, shown, "path: `"+dir+"`")
	require.Contains(a.t, strings.ReplaceAll(shown, `\n`, "\n"), from)
}

// A folder that only claims to be a worktree of a declared folder gets nothing.
//
// Clause A38.
func TestForgedWorktreesGetNothing(t *testing.T) {
	app := repository(t, "f", "")
	dep := folder(t)
	tree := worktreeOf(t, app)
	own := dirtest.Read(t, filepath.Join(tree, ".git"))
	config := file(t, "config.json", fmt.Sprintf(
		`{"workspaces": [{"cwd": %q, "directories": [%q], "permissions": {"deny": ["read secret"]}}]}`, app, dep))
	a := start(t, "--config", config).initialize()
	forged := folder(t, ".git", own)
	require.NotContains(t, a.shown(a.open(forged)), dep)
	// The agent of the worktree makes another folder one, or leaves the repository.
	at := filepath.Join(app, ".git", "worktrees", "tree")
	require.NoError(t, os.WriteFile(filepath.Join(at, "gitdir"), []byte(filepath.Join(folder(t), ".git")+"\n"), 0o600))
	require.NotContains(t, a.shown(a.open(tree)), dep)
	require.NoError(t, os.WriteFile(filepath.Join(at, "gitdir"), []byte(filepath.Join(tree, ".git")+"\n"), 0o600))
	require.Contains(t, a.shown(a.open(tree)), dep)
	require.NoError(t, os.WriteFile(filepath.Join(tree, ".git"), []byte("gitdir: /nowhere\n"), 0o600))
	id := a.open(tree)
	require.NotContains(t, a.shown(id), dep)
	require.Contains(t, a.says(id, "/permissions"), "read secret", "what it may not do still holds")
}

// The worktrees of a bare repository are in each other's place, however the repository lies beside
// them.
//
// Clause A38.
func TestWorktreesOfBareRepositories(t *testing.T) {
	for name, bare := range map[string]string{"mirror": "../app.git", ".bare": ".bare", ".git": ".git"} {
		t.Run(name, func(t *testing.T) {
			source := repository(t, "app/sub/f", "", "app/secret", "")
			project := filepath.Join(folder(t), "project")
			require.NoError(t, os.Mkdir(project, 0o700))
			gitIn(t, project, "clone", "-q", "--bare", source, bare)
			if name == ".bare" {
				require.NoError(t, os.WriteFile(filepath.Join(project, ".git"), []byte("gitdir: ./.bare\n"), 0o600))
			}
			for _, tree := range []string{"one", "two", "three"} {
				gitIn(t, filepath.Join(project, bare), "worktree", "add", "-q", "--detach", filepath.Join(project, tree))
			}
			one, two := filepath.Join(project, "one/app"), filepath.Join(project, "two/app")
			dep, mine := folder(t, "d", ""), folder(t)
			config := configFile(t, map[string]any{"whenOmitted": "stored", "workspaces": []any{
				map[string]any{"cwd": one, "directories": []string{dep, "../../three"},
					"permissions": map[string]any{"allow": []string{"run make"}, "deny": []string{"read secret"}}},
				map[string]any{"cwd": filepath.Join(project, "three"), "directories": []string{mine}},
			}})
			a := start(t, "--config", config).initialize()
			rules := func(session string) string {
				return a.says(session, "/permissions")
			}
			for _, cwd := range []string{two, filepath.Join(two, "sub")} {
				original := strings.Replace(cwd, "/two/", "/one/", 1)
				id := a.open(cwd)
				a.hasFolder(id, dep, "folders of "+original+", of which this is a worktree")
				a.hasFolder(id, filepath.Join(project, "three"), "workspaces[0]")
				require.NotContains(t, a.shown(id), mine)
				require.Contains(t, rules(id), "read secret")
				require.Contains(t, rules(id), "run make")
				var fork struct{ SessionID string }
				a.call("session/fork", map[string]any{"sessionId": id, "cwd": cwd, "mcpServers": []any{}}, &fork)
				a.hasFolder(fork.SessionID, dep, "workspaces[0]")
			}
			// An entry of its own takes precedence, but what is denied still is.
			third := a.open(filepath.Join(project, "three"))
			require.Contains(t, a.shown(third), mine)
			require.NotContains(t, a.shown(third), dep)
			require.NotContains(t, rules(third), "run make")
			require.Contains(t, rules(a.open(filepath.Join(project, "three/app"))), "read secret")
			// What only one of both names is no worktree.
			own := dirtest.Read(t, filepath.Join(project, "two/.git"))
			forged := folder(t, ".git", own, "app/f", "")
			require.NotContains(t, a.shown(a.open(filepath.Join(forged, "app"))), dep)
			require.NoError(t, os.WriteFile(filepath.Join(project, "two/.git"), []byte("gitdir: /nowhere\n"), 0o600))
			left := a.open(two)
			require.NotContains(t, a.shown(left), dep)
			require.NotContains(t, rules(left), "run make")
			require.Contains(t, rules(left), "read secret", "what it may not do still holds")
		})
	}
}
