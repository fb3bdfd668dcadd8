package model

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/permission/consent"
	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/workspace"
)

// A rule holds for a root, in all sessions, until it is revoked.
//
// Clause B2.
func TestCommandRules(t *testing.T) {
	needShell(t)
	root, other := dirtest.New(t, "Makefile", "check:\n\t@echo checked $(X)\n", "sub/Makefile", "check:\n"),
		dirtest.New(t, "Makefile", "check:\n")
	state := filepath.Join(t.TempDir(), "consents")
	e := open(t, setup{roots: []string{root, other}, consents: state})
	e.answer(allowAlways)
	asked := e.prompt("Run.", run("make check")).asked
	require.Len(t, asked, 1)
	require.Equal(t, "Always: run `make check ...` in "+filepath.Base(root), asked[0].Options[1].Name)
	require.Contains(t, string(asked[0].Call.Content), "not asked for again with these options: `-k ")
	require.Empty(t, e.prompt("Run.", run("make check -s -j 2")).asked)
	require.Empty(t, e.prompt("Run.", run("make  check", "cwd", "sub")).asked)
	e.restart()
	require.Empty(t, e.prompt("Run.", run("make check")).asked)

	e.answer(rejectOnce)
	for _, line := range []string{"make check; echo x", "make check $(echo x)", "make", "make clean",
		"make check clean", "make check X=1", "make check -f /x"} {
		require.Len(t, e.prompt("Run.", run(line)).asked, 1, line)
	}
	require.Len(t, e.prompt("Run.", run("make check", "cwd", other)).asked, 1)

	store := consent.NewStore(state)
	all, err := store.List()
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.Equal(t, "run make check ...", all[0].Rule)
	require.NoError(t, store.Forget(all[0].ID))
	require.Len(t, e.prompt("Run.", run("make check")).asked, 1)
}

// A rule for git holds for the shown options and for files in the roots, and nothing that the
// repository configures runs.
//
// Clause R3.
func TestRulesOfGit(t *testing.T) {
	needShell(t)
	for name, requests := range map[string]requests{"child": nil, "terminal": offered(t)} {
		t.Run(name, func(t *testing.T) {
			root := dirtest.New(t, "a.txt", "needle\n", "hooks/post-index-change", "#!/bin/sh\ntouch ran\n",
				"x", "touch ran\n")
			require.NoError(t, os.Chmod(filepath.Join(root, "hooks", "post-index-change"), 0o755))
			for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"config", "core.hooksPath", "hooks"}} {
				require.NoError(t, exec.Command("git", append([]string{"-C", root}, args...)...).Run())
			}
			changed := time.Now().Add(time.Hour)
			require.NoError(t, os.Chtimes(filepath.Join(root, "a.txt"), changed, changed))
			state := filepath.Join(t.TempDir(), "consents")
			e := open(t, setup{roots: []string{root}, requests: requests, consents: state})
			e.answer(allowAlways)
			require.Len(t, e.prompt("Run.", run("git grep needle")).asked, 1)
			require.Len(t, e.prompt("Run.", run("git status")).asked, 1)
			require.Empty(t, e.prompt("Run.", run("git grep -n needle a.txt"), run("git status -sb")).asked)

			// Earlier versions offered this.
			dir, err := workspace.ParseDir(root)
			require.NoError(t, err)
			require.NoError(t, consent.NewStore(state).Allow(consent.ForRule(dir, "run git commit ...", "")))
			e.answer(rejectOnce)
			for _, line := range []string{"git grep --open=sh needle", "git grep -Osh needle", "git commit -m x",
				"git grep --no-index needle /etc", "git grep needle -- /etc", "git status -- .."} {
				require.Len(t, e.prompt("Run.", run(line)).asked, 1, line)
			}
			require.NoFileExists(t, filepath.Join(root, "ran"))
		})
	}
}
