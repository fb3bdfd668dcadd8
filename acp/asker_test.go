package acp_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/explore"
	"github.com/acp-agent/acp-agent/internal/test/needs"
	"github.com/acp-agent/acp-agent/internal/worktree"
	"github.com/acp-agent/acp-agent/workspace"
)

// ruling returns permissions with these rules.
func ruling(rules acp.Permissions) func(workspace.Dir) *acp.Permissions {
	return func(workspace.Dir) *acp.Permissions { return &rules }
}

// doors are requests of an agent, by the rule that is about each.
func doors(root string) map[string][]string {
	request := func(method string, params map[string]any) string {
		return method + " " + encode(params)
	}
	path := func(names ...string) string { return strings.Join(append([]string{root}, names...), "/") }
	reads := []string{}
	for _, p := range []string{path(".env"), path("sub", "..", ".env"), path("link"), path("sub", ".ENV"),
		path("up", "..", "key")} {
		reads = append(reads, request("fs/read_text_file", map[string]any{"path": p}))
	}
	return map[string][]string{
		"read **/.env": reads[:4], "read key": reads[4:],
		"edit locked/**": {
			request("fs/write_text_file", map[string]any{"path": path("locked", "x"), "content": ""}),
			request("fs/write_text_file", map[string]any{"path": path("sub", "..", "locked", "new"), "content": ""}),
		},
		"run git push": {
			request("terminal/create", map[string]any{"command": "git push"}),
			request("terminal/create", map[string]any{"command": "git", "args": []string{"-C", "x", "push"}}),
			request("terminal/create", map[string]any{"command": "sh", "args": []string{"-c", "cd x; git push"}}),
			request("terminal/create", map[string]any{"command": "git push", "cwd": path("sub")}),
			request("terminal/create", map[string]any{"command": "x", "env": []any{map[string]any{"name": "PAGER", "value": "git push"}}}),
			request("terminal/create", map[string]any{"command": "x", "_meta": map[string]any{"shell": "git push"}}),
		},
	}
}

func ruledFolder(t *testing.T) string {
	root := folder(t)
	for _, dir := range []string{"sub/.ENV", "locked/x", ".env", "key", "other/deep/x", "open"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(root, dir)), 0o700))
		writeFile(t, filepath.Join(root, dir), "hunter2\n")
	}
	linkTo(t, filepath.Join(root, "link"), ".env")
	linkTo(t, filepath.Join(root, "up"), "other/deep") // up/../key is other/key, or key
	writeFile(t, filepath.Join(root, "other", "key"), "hunter2\n")
	return root
}

// Deny and ask rules hold for what an agent does through the client.
//
// Clause R5.
func TestRulesHoldForTheClientsFiles(t *testing.T) {
	root := ruledFolder(t)
	for rule, requests := range doors(root) {
		for _, effect := range []string{"deny", "ask"} {
			rules := acp.Permissions{Deny: []string{rule}}
			if effect == "ask" {
				rules = acp.Permissions{Ask: []string{rule}, Allow: []string{"read", "edit"}}
			}
			c := start(t, acp.Options{Backend: using(&scripted{}), Permissions: ruling(rules)})
			id := c.open(root)
			for _, request := range requests {
				asked, passed := len(c.questions()), c.passOn("reject-once")
				said := c.texts(id, "call "+request)[0]
				require.Zero(t, *passed, "%s %s", effect, request)
				if effect == "deny" {
					require.Len(t, c.questions(), asked, request)
					require.Contains(t, said, `the user's rule "`+rule+`" denies it`, request)
					continue
				}
				require.Len(t, c.questions(), asked+1, request)
				require.Contains(t, said, "the user did not allow it", request)
				passed = c.passOn("allow-once")
				c.texts(id, "call "+request)
				require.Equal(t, []int{asked + 2, 1}, []int{len(c.questions()), *passed}, request)
			}
			other := `fs/read_text_file ` + encode(map[string]string{"path": filepath.Join(root, "open")})
			require.Contains(t, c.texts(id, "call "+other)[0], "passed on")
			require.Contains(t, c.texts(id, `call terminal/create {"command":"git pull"}`)[0], "terminalId")
		}
	}
}

// passOn answers all further requests that are passed on, and counts them. It says yes to the
// questions of the agent, and chooses an option in those of acp-agent.
func (c *client) passOn(option string) (passed *int) {
	passed = new(int)
	c.answer(func(m message) string {
		switch {
		case m.Method != "session/request_permission":
			*passed++
			return `{"content":"passed on","terminalId":"t"}`
		case strings.Contains(string(m.Params), "allow-once"):
			return `{"outcome":{"outcome":"selected","optionId":"` + option + `"}}`
		}
		return `{"outcome":{"outcome":"selected","optionId":"yes"}}`
	})
	return passed
}

// What the user has just allowed the agent is not asked again, once.
//
// Clause R5.
func TestAskedOnce(t *testing.T) {
	root := ruledFolder(t)
	c := start(t, acp.Options{Backend: using(&scripted{}),
		Permissions: ruling(acp.Permissions{Ask: []string{"edit locked/**", "run git push"}})})
	c.passOn("allow-once")
	id, file := c.open(root), filepath.Join(root, "locked", "x")
	write := "call fs/write_text_file " + encode(map[string]string{"path": file, "content": "new"})
	ask := `call session/request_permission {"toolCall":{"toolCallId":"t","kind":"edit","title":"Edit",` +
		`"locations":[{"path":` + encode(file) + `}]},"options":` + once + `}`
	for _, each := range []struct{ ask, do string }{
		{ask, write}, {runRequest("r", "git push"), `call terminal/create {"command":"git push"}`},
	} {
		before := len(c.questions())
		c.texts(id, each.ask)
		c.texts(id, each.do)
		require.Len(t, c.questions(), before+2, "in another turn it is asked again")
		c.texts(id, each.ask+"\nthen "+each.do)
		require.Len(t, c.questions(), before+3)
		c.texts(id, each.ask+"\nthen "+each.do+"\nthen "+each.do)
		require.Len(t, c.questions(), before+5)
	}
}

// Clause R5.
func TestRulesHoldInExplore(t *testing.T) {
	root := ruledFolder(t)
	for _, rules := range []acp.Permissions{
		{Deny: []string{"read **/.env"}}, {Ask: []string{"read **/.env"}},
	} {
		c := start(t, acp.Options{Backend: using(explore.New()), Permissions: ruling(rules)})
		c.permit("reject-once")
		id := c.open(root)
		for _, command := range []string{"/read .env", "/read link", "/search hunter", "hunter2"} {
			said := strings.Join(c.texts(id, command), "")
			require.NotContains(t, strings.ReplaceAll(said, "open:1: hunter2", ""), ".env:1: hunter2", command)
			if strings.HasPrefix(command, "/read") {
				require.NotContains(t, said, "hunter2", command)
			}
		}
		said := strings.Join(c.texts(id, "/search hunter"), "")
		require.Contains(t, said, `2 files (the user's rule "read **/.env" `)
		if rules.Deny == nil {
			require.Len(t, c.questions(), 2, "to read twice")
			c.permit("allow-once")
			require.Contains(t, strings.Join(c.texts(id, "/read .env"), ""), "hunter2")
			continue
		}
		require.Empty(t, c.questions())
	}
}

// A rule for a folder in a repository holds for the same folder in a worktree.
//
// Clause R3.
func TestRulesHoldBelowWorktrees(t *testing.T) {
	needs.Programs(t, "git")
	shop := folder(t)
	require.NoError(t, os.MkdirAll(filepath.Join(shop, "web", "deep"), 0o700))
	writeFile(t, filepath.Join(shop, "web", "deep", "f"), "hunter2")
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"-c", "user.name=u", "-c",
		"user.email=u@example.com", "commit", "-q", "-m", "One"}} {
		output, err := exec.Command("git", append([]string{"-C", shop}, args...)...).CombinedOutput()
		require.NoError(t, err, "%s", output)
	}
	for name, cwd := range map[string]string{"fix": shop, "web": filepath.Join(shop, "web")} { // for which the worktrees are made
		records, dir := t.TempDir(), folder(t)
		roots, err := workspace.NewRoots(cwd, nil)
		require.NoError(t, err)
		plan, err := worktree.NewRegistry(records, dir).Plan(t.Context(), name, roots, worktree.Options{})
		require.NoError(t, err)
		made, err := plan.Make(t.Context())
		require.NoError(t, err)
		top := made.Repositories[0].Path
		c := start(t, acp.Options{Backend: using(&scripted{}),
			Worktrees: acp.Worktrees{Records: records, Dir: dir},
			Permissions: func(cwd workspace.Dir) *acp.Permissions {
				if parseDir(t, filepath.Join(shop, "web")).Contains(cwd) {
					return &acp.Permissions{Deny: []string{"read **/f"}}
				}
				return nil
			}})
		c.answer(func(message) string { return `{"content":"passed on"}` })
		for _, below := range []string{"web", "web/deep"} {
			for _, in := range []string{shop, top} {
				id := c.open(filepath.Join(in, below))
				said := c.readFile(id, filepath.Join(in, "web", "deep", "f"))
				require.Contains(t, said, "denies it", "%s in %s", below, in)
			}
		}
		require.Contains(t, c.readFile(c.open(top), filepath.Join(top, "web", "deep", "f")), "passed on")
	}
}

// What the user has allowed in one folder is asked about in another, where the words name other
// files.
//
// Clause R5.
func TestAskedOnceInOneFolder(t *testing.T) {
	root := ruledFolder(t)
	for _, name := range []string{"a/secret", "b/secret"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o700))
		writeFile(t, filepath.Join(root, name), "hunter2\n")
	}
	c := start(t, acp.Options{Backend: using(&scripted{}),
		Permissions: ruling(acp.Permissions{Ask: []string{"read **/secret"}})})
	c.passOn("reject-once")
	in := func(dir string) string { return `"cwd":` + encode(filepath.Join(root, dir)) }
	ask := `call session/request_permission {"toolCall":{"toolCallId":"t","kind":"execute","title":"Run",` +
		`"rawInput":{"command":"cat secret",` + in("a") + `}},"options":` + once + `}`
	id := c.open(root)
	for dir, want := range map[string]string{"a": "terminalId", "b": "the user did not allow it"} {
		said := c.texts(id, ask+"\nthen call terminal/create "+`{"command":"cat","args":["secret"],`+in(dir)+`}`)
		require.Contains(t, said[len(said)-1], want, dir)
	}
}

// A link outside of the folders, or the process's own view of them, is no way round a rule about a
// file in them: it is refused before the user is asked about a file outside.
//
// Clause R5.
func TestRulesHoldForPathsFromOutside(t *testing.T) {
	root, outside := ruledFolder(t), folder(t)
	linkTo(t, filepath.Join(outside, "alias"), root)
	linkTo(t, filepath.Join(outside, "one"), filepath.Join(root, "locked", "x"))
	c := start(t, acp.Options{Backend: using(&scripted{}), Permissions: ruling(acp.Permissions{
		Allow: []string{"read outside " + outside}, Deny: []string{"read locked/**", "edit locked/**"}})})
	c.passOn("allow-once")
	id := c.open(root)
	paths := []string{outside + "/alias/locked/x", outside + "/one"}
	if runtime.GOOS == "linux" {
		paths = append(paths, "/proc/self/root"+root+"/locked/x")
	}
	for _, path := range paths {
		for _, request := range []string{
			"fs/read_text_file " + encode(map[string]string{"path": path}),
			"fs/write_text_file " + encode(map[string]string{"path": path, "content": ""}),
			"terminal/create " + encode(map[string]any{"command": "cat", "args": []string{path}}),
		} {
			said := strings.Join(c.texts(id, "call "+request), "")
			require.NotContains(t, said, "hunter2", request)
			require.NotContains(t, said, "passed on", request)
			require.NotContains(t, said, "terminalId", request)
			require.Empty(t, c.questions(), request)
		}
	}
}
