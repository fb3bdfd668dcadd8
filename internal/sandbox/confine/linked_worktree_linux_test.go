package confine_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/internal/sandbox"
	"github.com/acp-agent/acp-agent/internal/sandbox/confine"
	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/proctest"
	"github.com/acp-agent/acp-agent/internal/test/roottest"
	"github.com/acp-agent/acp-agent/workspace"
)

// author lets git commit without a configuration of the user.
var author = []string{"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a",
	"GIT_COMMITTER_EMAIL=a@example.com", "GIT_CONFIG_NOSYSTEM=1"}

// git runs git as the user in dir.
func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), append(author, "HOME="+dir)...)
	text, err := cmd.CombinedOutput()
	require.NoError(t, err, "git %v: %s", args, text)
	return strings.TrimSpace(string(text))
}

// cloned returns a repository with a commit, and a linked worktree of it.
func cloned(t *testing.T) (repository, worktree string) {
	t.Setenv("PATH", "/usr/bin:/bin")
	repository, worktree = filepath.Join(dirtest.New(t), "repo"), filepath.Join(dirtest.New(t), "tree")
	git(t, filepath.Dir(repository), "init", "-q", repository)
	git(t, repository, "commit", "-q", "--allow-empty", "-m", "first")
	git(t, repository, "worktree", "add", "-q", "-b", "topic", worktree)
	return repository, worktree
}

// commit is a script that commits in a folder.
const commit = `; echo new >file && git add file && git commit -q -m second && git tag marked`

// A process in the sandbox commits in a linked worktree, and changes nothing else of the
// repository.
//
// Clause X1.
func TestCommitInALinkedWorktree(t *testing.T) {
	if proctest.AsOrdinaryUser(t, t.Name()) {
		return
	}
	for _, mode := range []sandbox.Mode{sandbox.Write, sandbox.Strict} {
		t.Run(mode.String(), func(t *testing.T) {
			repository, worktree := cloned(t)
			at := newAttacked(t, mode)
			at.env = append(append(at.env, author...), "wt="+worktree, "repo="+repository)
			before := contents(t, repository, "config", "hooks", "packed-refs", "HEAD", "index", "worktrees/other")
			for range 2 {
				require.NoError(t, at.run("cd $wt; git checkout -q -B next"+commit+"$$; git rebase -q HEAD^", worktree))
			}
			require.Equal(t, "second", git(t, repository, "log", "-1", "--format=%s", "next"))
			require.NoError(t, at.run("cd $repo/.git; echo evil >>config; echo evil >hooks/pre-commit; "+
				"git pack-refs --all; git -C $repo checkout -q topic; echo evil >HEAD; echo evil >packed-refs; "+
				"mkdir worktrees/other; echo evil >$repo/file", worktree))
			require.Equal(t, before, contents(t, repository, "config", "hooks", "packed-refs", "HEAD", "index", "worktrees/other"))
			require.NoFileExists(t, filepath.Join(repository, "file"))
		})
	}
}

// contents returns what files and directories of a repository contain.
func contents(t *testing.T, repository string, names ...string) map[string]string {
	found := map[string]string{}
	for _, name := range names {
		_ = filepath.WalkDir(filepath.Join(repository, ".git", name), func(path string, d os.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				found[path] = dirtest.Read(t, path)
			}
			return nil
		})
	}
	return found
}

// An agent cannot reach a repository with its next process by what it leaves in a folder.
//
// Clause X6.
func TestPlantedWorktrees(t *testing.T) {
	if proctest.AsOrdinaryUser(t, t.Name()) {
		return
	}
	for name, attack := range map[string]struct {
		plant string   // as an agent with these roots
		roots []string // of the first process
		next  string   // the root of the next one
	}{
		"a file that names the user's worktree": {
			`echo "gitdir: $repo/.git/worktrees/tree" >$a/.git`, []string{"a"}, "a"},
		"a link to the file of the user's worktree": {`ln -s $wt/.git $a/.git`, []string{"a"}, "a"},
		"a link to the repository":                  {`ln -s $repo/.git $a/.git`, []string{"a"}, "a"},
		"a repository that names another as its own": {
			`mkdir -p $a/x/worktrees/y; echo "gitdir: $a/x/worktrees/y" >$a/.git; echo $a/.git >$a/x/worktrees/y/gitdir
			echo $repo/.git >$a/x/worktrees/y/commondir`, []string{"a"}, "a"},
		"a repository with links to another": {
			`mkdir -p $a/x/worktrees; ln -s $repo/.git/objects $repo/.git/refs $a/x; mkdir $a/x/worktrees/y
			echo "gitdir: $a/x/worktrees/y" >$a/.git; echo $a/.git >$a/x/worktrees/y/gitdir
			echo ../.. >$a/x/worktrees/y/commondir`, []string{"a"}, "a"},
		"a back-link that is a link": {
			`mkdir -p $a/x; ln -s $repo/.git/worktrees $a/x/worktrees
			echo "gitdir: $a/x/worktrees/tree" >$a/.git`, []string{"a"}, "a"},
		"the back-link of its own worktree, turned": {
			`echo $a/.git >$repo/.git/worktrees/tree/gitdir; cp $wt/.git $a/.git`, []string{"wt", "a"}, "a"},
		"a worktree in a repository that it may write": {
			`mkdir -p $repo/.git/worktrees/y; echo "gitdir: $repo/.git/worktrees/y" >$a/.git
			echo $a/.git >$repo/.git/worktrees/y/gitdir; echo ../.. >$repo/.git/worktrees/y/commondir`,
			[]string{"repo", "a"}, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			repository, worktree := cloned(t)
			at := newAttacked(t, sandbox.Write)
			at.env = append(at.env, "wt="+worktree, "repo="+repository)
			dirs := map[string]string{"a": at.a, "wt": worktree, "repo": repository}
			var roots []string
			for _, name := range attack.roots {
				roots = append(roots, dirs[name])
			}
			require.NoError(t, at.run(attack.plant, roots...))
			require.NoError(t, at.run("touch $repo/.git/objects/evil $repo/.git/refs/evil "+
				"$repo/.git/worktrees/tree/evil $repo/.git/worktrees/y/evil; touch $a/works", dirs[attack.next]))
			require.FileExists(t, filepath.Join(at.a, "works"))
			for _, place := range []string{"objects", "refs", "worktrees/tree", "worktrees/y"} {
				require.NoFileExists(t, filepath.Join(repository, ".git", place, "evil"))
			}
		})
	}
}

// A worktree that a restricted process could have made works once the user has accepted it.
//
// Clause X6.
func TestAcceptAWorktree(t *testing.T) {
	if proctest.AsOrdinaryUser(t, t.Name()) {
		return
	}
	repository, _ := cloned(t)
	at := newAttacked(t, sandbox.Write)
	require.NoError(t, at.run("true", repository))
	inside := filepath.Join(repository, "trees", "x y")
	git(t, repository, "worktree", "add", "-q", "-b", "x", inside)
	at.env = append(append(at.env, author...), "wt="+inside)
	require.NoError(t, at.run(`cd "$wt"`+commit, inside))
	require.NotEqual(t, "second", git(t, inside, "log", "-1", "--format=%s"))
	own := filepath.Join(repository, ".git", "worktrees", "x-y")
	explained, _ := confine.ExplainDenial(sandbox.Policy{Mode: sandbox.Write, Write: []string{inside}},
		"fatal: Unable to create '"+own+"/index.lock': Permission denied", "the agent", "agents.x")
	require.Contains(t, explained, "acp-agent permissions follow '"+inside+"'")

	accepted, err := confine.AcceptLinks(at.settings.Records, inside)
	require.NoError(t, err)
	require.Len(t, accepted, 1)
	require.Equal(t, own, accepted[0].Target)
	require.NoError(t, at.run(`cd "$wt"`+commit, inside))
	require.Equal(t, "second", git(t, inside, "log", "-1", "--format=%s"))
}

// What git cannot write in the repository of a worktree is explained, and nothing of the repository
// is suggested.
//
// Clauses X6, X8.
func TestNothingOfARepositoryIsSuggested(t *testing.T) {
	if proctest.AsOrdinaryUser(t, t.Name()) {
		return
	}
	repository, worktree := cloned(t)
	at := newAttacked(t, sandbox.Write)
	at.env = append(append(at.env, author...), "wt="+worktree)
	for script, affected := range map[string]bool{"git branch x; git branch -d x": true,
		"git tag x; git tag -d x": true, "git gc": false} {
		said := filepath.Join(at.a, "said")
		require.NoError(t, at.run(`cd "$wt"; { `+script+`; } 2>"$a/said"; true`, worktree, at.a))
		text := dirtest.Read(t, said)
		p := sandbox.Policy{Mode: sandbox.Write, Write: []string{worktree}}
		explained, path := confine.ExplainDenial(p, text, "the agent", "agents.x")
		require.Contains(t, path, filepath.Join(repository, ".git"), "%s", text)
		require.Contains(t, explained, "No setting is suggested, because only caches of known tools are")
		require.NotContains(t, explained, "sandboxWrite")
		require.Equal(t, affected, strings.Contains(explained, "`branch -d`"), explained)
	}
}

// Worktrees that git made differently work too: of a bare repository, of a worktree, with relative
// paths, and one that was moved.
func TestKindsOfWorktrees(t *testing.T) {
	if proctest.AsOrdinaryUser(t, t.Name()) {
		return
	}
	for name, build := range map[string]func(repository, worktree string) string{
		"of a bare repository": func(repository, _ string) string {
			bare := filepath.Join(dirtest.New(t), "bare.git")
			git(t, repository, "clone", "-q", "--bare", repository, bare)
			tree := filepath.Join(dirtest.New(t), "bared")
			git(t, bare, "worktree", "add", "-q", "-b", "bared", tree)
			return tree
		},
		"of a worktree": func(_, worktree string) string {
			tree := filepath.Join(dirtest.New(t), "second")
			git(t, worktree, "worktree", "add", "-q", "-b", "second", tree)
			return tree
		},
		"with relative paths": func(repository, worktree string) string {
			own := filepath.Join(repository, ".git", "worktrees", "tree")
			there, err := filepath.Rel(worktree, own)
			require.NoError(t, err)
			back, err := filepath.Rel(own, worktree)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(worktree, ".git"), []byte("gitdir: "+there+"\n"), 0o600))
			require.NoError(t, os.WriteFile(filepath.Join(own, "gitdir"), []byte(back+"/.git\n"), 0o600))
			return worktree
		},
		"that was moved": func(repository, worktree string) string {
			moved := worktree + " moved"
			git(t, repository, "worktree", "move", worktree, moved)
			return moved
		},
		"with a locked registration": func(repository, worktree string) string {
			git(t, repository, "worktree", "lock", worktree)
			return worktree
		},
	} {
		t.Run(name, func(t *testing.T) {
			worktree := build(cloned(t))
			at := newAttacked(t, sandbox.Write)
			at.env = append(append(at.env, author...), "wt="+worktree)
			require.NoError(t, at.run(`cd "$wt"`+commit, worktree))
			require.Equal(t, "second", git(t, worktree, "log", "-1", "--format=%s"))
		})
	}
}

// Ordinary sequences of git end in the same way in the sandbox and without it, or the reason is
// explained, and a command that the explanation names ends them in that way outside.
//
// Clauses X1, X8.
func TestSequencesInALinkedWorktree(t *testing.T) {
	if proctest.AsOrdinaryUser(t, t.Name()) {
		return
	}
	const change = "echo new >file; git add file; git commit -q -m second; "
	const conflict = "git checkout -q -b other; echo theirs >file; git add file; git commit -q -m theirs; " +
		"git checkout -q topic; echo ours >file; git add file; git commit -q -m ours; "
	const remote = "git -c remote.o.url=../remote -c remote.o.fetch=+refs/heads/*:refs/remotes/o/* "
	t.Setenv("GIT_AUTHOR_DATE", "@1 +0000")
	t.Setenv("GIT_COMMITTER_DATE", "@1 +0000")
	for name, sequence := range map[string]struct {
		script string
		ends   string // what ends the sequence outside if the sandbox denies to delete a reference
	}{
		"commit": {change + "echo x >file; git commit -q -a --amend --no-edit", ""},
		"switch": {"git switch -q -c x; " + change + "git switch -q topic", ""},
		"merge": {"git switch -q -c x; " + change + "git switch -q topic; git merge -q --no-ff -m merged x",
			""},
		"merge --abort": {conflict + "git merge -q other; git merge --abort", ""},
		"reset":         {change + "git reset -q --hard HEAD^", ""},
		"tag":           {change + "git tag x; git tag -a -m y y", ""},
		"push":          {change + "git push -q ../remote topic; git fetch -q ../remote topic", ""},
		"stash pop":     {change + "echo z >file; git stash -q; git stash pop -q", "git stash drop -q"},
		"stash drop":    {change + "echo z >file; git stash -q; git stash drop -q", "git stash drop -q"},
		"cherry-pick": {conflict + "git checkout -q topic^; git cherry-pick other",
			"git cherry-pick --quit"},
		"cherry-pick --skip": {conflict + "git cherry-pick other; git cherry-pick --skip",
			"git cherry-pick --quit"},
		"revert": {change + "git revert --no-edit HEAD", "git revert --quit"},
		"rebase": {conflict + "git rebase -q other; echo both >file; git add file; " +
			"GIT_EDITOR=true git rebase --continue", "git rebase --quit; git cherry-pick --quit"},
		"branch -d": {"git branch x; git branch -d x", "git branch -d x"},
		"branch -m": {"git branch x; git branch -m x y", "git branch -m x y"},
		"tag -d":    {"git tag x; git tag -d x", "git tag -d x"},
		"fetch -p": {"git push -q ../remote topic:x; " + remote + "fetch -q; git push -q ../remote :x; " +
			remote + "fetch -q -p", remote + "fetch -q -p"},
		"bisect": {change + "git bisect start -q HEAD HEAD^; git bisect bad; git bisect reset", "git bisect reset"},
	} {
		t.Run(name, func(t *testing.T) {
			free := newSequence(t, sandbox.Off)
			free.run(sequence.script)
			for _, mode := range []sandbox.Mode{sandbox.Write, sandbox.Strict} {
				restricted := newSequence(t, mode)
				said := restricted.run(sequence.script)
				if sequence.ends != "" {
					explained, _ := confine.ExplainDenial(sandbox.Policy{Mode: sandbox.Write,
						Write: []string{restricted.worktree}}, said, "the agent", "agents.x")
					require.Contains(t, explained, "Git needs this file to delete a reference", said)
					for end := range strings.SplitSeq(sequence.ends, "; ") {
						again := strings.Contains(sequence.script, end) && strings.Contains(explained, "run the command again")
						named := strings.Contains(explained, "`"+strings.TrimSuffix(end, " -q")+"`")
						require.True(t, again || named, "%s: %s", end, explained)
					}
					restricted.settings.Mode = sandbox.Off
					restricted.run(sequence.ends)
				}
				require.Equal(t, free.left(), restricted.left(), "%s: %s", mode, said)
			}
		})
	}
}

// sequence is a linked worktree in which an agent runs git.
type sequence struct {
	*attacked
	repository, worktree, remote string
}

func newSequence(t *testing.T, mode sandbox.Mode) *sequence {
	s := &sequence{attacked: newAttacked(t, mode)}
	s.repository, s.worktree = cloned(t)
	s.remote = s.mkdir(filepath.Join(filepath.Dir(s.worktree), "remote"))
	git(t, s.remote, "init", "-q", "--bare")
	require.NoError(t, os.WriteFile(filepath.Join(s.home, ".gitconfig"), []byte("[advice]\n"), 0o600))
	s.env = append(append(s.env, author...), "wt="+s.worktree, "GIT_AUTHOR_DATE=@1 +0000",
		"GIT_COMMITTER_DATE=@1 +0000")
	return s
}

// run runs a script in the worktree, and returns its complaints.
func (s *sequence) run(script string) string {
	require.NoError(s.t, s.attacked.run(`cd "$wt"; exec 2>"$a/said" >/dev/null; `+script,
		s.worktree, s.remote, s.a))
	return dirtest.Read(s.t, filepath.Join(s.a, "said"))
}

// left returns the files, the references, and what git is in the middle of.
func (s *sequence) left() string {
	text := git(s.t, s.worktree, "status", "--porcelain=v2", "--branch") + "\n" +
		git(s.t, s.worktree, "for-each-ref") + "\n"
	entries, err := os.ReadDir(filepath.Join(s.repository, ".git", "worktrees", "tree"))
	require.NoError(s.t, err)
	for _, e := range entries {
		if name := e.Name(); strings.HasSuffix(name, "_HEAD") && name != "ORIG_HEAD" ||
			strings.HasPrefix(name, "rebase-") || strings.HasPrefix(name, "BISECT") || name == "sequencer" {
			text += e.Name() + "\n"
		}
	}
	file, _ := os.ReadFile(filepath.Join(s.worktree, "file"))
	return text + string(file)
}

// A root that may only be read stays as it is, also if it is a worktree, the repository of one that
// may be changed, in the directory for temporary files, or in another root.
//
// Clause A39.
func TestReadOnlyRoots(t *testing.T) {
	repository, worktree := cloned(t)
	other := dirtest.New(t, "dep/f", "old")
	for name, paths := range map[string][2]string{
		"its worktree":   {other, worktree},
		"its repository": {worktree, repository},
		"in another":     {other, filepath.Join(other, "dep")},
	} {
		t.Run(name, func(t *testing.T) {
			kept, roots := paths[1], roottest.Open(t, paths[0], paths[1]).Opened()
			roots[1].Grant = workspace.ReadOnly
			before := dirtest.Planted(t, kept)
			for _, mode := range []sandbox.Mode{sandbox.Write, sandbox.Strict} {
				c, err := confine.Command(process.Command{Path: "/bin/sh", Args: []string{"-c", "cd " + kept +
					"; echo evil >f; mkdir d; ln f hard; mv f g; rm -f f .git; git commit -q --allow-empty -m x; " +
					"git -C " + worktree + " commit -q --allow-empty -m y; cat f >/dev/null; echo done >" +
					filepath.Join(paths[0], "done")}, Env: author},
					sandbox.Settings{Mode: mode, Records: t.TempDir()}, roots)
				require.NoError(t, err)
				p, err := process.Start(t.Context(), c, process.Options{})
				require.NoError(t, err)
				_ = p.Stdin().Close()
				_ = p.Wait(t.Context())
				require.NoError(t, p.Stop(t.Context()))
				require.FileExists(t, filepath.Join(paths[0], "done"))
				require.Equal(t, before, dirtest.Planted(t, kept))
			}
		})
	}
}
