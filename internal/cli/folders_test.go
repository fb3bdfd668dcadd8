package cli

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/internal/config"
	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/needs"
	"github.com/acp-agent/acp-agent/workspace"
)

// Sessions in a worktree that an editor made have the budget of their repository.
//
// Clause A38.
func TestBudgetsOfWorktrees(t *testing.T) {
	needs.Programs(t, "git")
	app, tree := dirtest.New(t, "sub/f", ""), filepath.Join(dirtest.New(t), "tree")
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"commit", "-q", "-m", "One"}, {"worktree", "add", "-q", tree}} {
		output, err := exec.Command("git", append([]string{"-C", app, "-c", "user.name=u", "-c", "user.email=u@example.com"}, args...)...).CombinedOutput()
		require.NoError(t, err, "%s", output)
	}
	budget, err := acp.ParseBudget("5 USD per day")
	require.NoError(t, err)
	sub, err := workspace.ParseDir(filepath.Join(app, "sub"))
	require.NoError(t, err)
	set := settings{storeSettings: storeSettings{stateDir: dirtest.New(t)}, config: config.Config{
		Workspaces: []config.Workspace{{Dir: sub, Budget: budget}}}}
	for path, want := range map[string]int{app + "/sub": 1, tree + "/sub": 1, app: 0, tree: 0} {
		cwd, err := workspace.ParseDir(path)
		require.NoError(t, err)
		require.Len(t, set.budgets(cwd), want, path)
	}
}
