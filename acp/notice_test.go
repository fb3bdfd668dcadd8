package acp_test

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/test/memstore"
)

// Before a folder with far more than a project in it is added, the question says what that grants.
// It can be added, and is not mentioned again.
//
// Clause A33.
func TestQuestionAboutLargeFolder(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("HOME does not set the home directory on Windows")
	}
	home := folder(t)
	project := filepath.Join(home, "project")
	shared := filepath.Join(home, "shared")
	for _, dir := range []string{project, shared} {
		require.NoError(t, os.Mkdir(dir, 0o700))
	}
	t.Setenv("HOME", home)
	c := start(t, acp.Options{})
	c.permit("allow-once")
	for argument, what := range map[string]string{
		"~": "is your home directory", "..": "is your home directory",
		filepath.Dir(home): "contains your home directory", "/": "is the top of the file system",
	} {
		id := c.open(project)
		require.Contains(t, c.say(id, "/roots add "+argument), "Added", argument)
		questions := c.questions()
		asked := string(questions[len(questions)-1].Params)
		require.Contains(t, asked, what, argument)
		require.Contains(t, asked, "keys, passwords and settings", argument)
		require.Equal(t, []string{"one"}, c.texts(id, "say one"), "it was told before")
	}
	id := c.open(project)
	c.say(id, "/roots add ../shared")
	questions := c.questions()
	require.NotContains(t, string(questions[len(questions)-1].Params), "passwords")
}

func TestLargeRootsAreToldOnce(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("HOME does not set the home directory on Windows")
	}
	home, project := folder(t), folder(t)
	above := filepath.Dir(home)
	t.Setenv("HOME", home)
	warned := func(said []string) (folders []string) {
		for _, text := range said {
			for line := range strings.Lines(text) {
				if rest, ok := strings.CutPrefix(line, "The folder `"); ok &&
					strings.Contains(line, "reaches everything in it") {
					folder, _, _ := strings.Cut(rest, "`")
					folders = append(folders, folder)
				}
			}
		}
		return folders
	}
	c := start(t, acp.Options{})

	id := c.open(project)
	require.Empty(t, warned(c.texts(id, "say one")))

	id = c.open(home, project)
	require.Empty(t, texts(c.messages(), id), "not before the first prompt")
	require.Equal(t, []string{home}, warned(c.texts(id, "say one")))
	require.Empty(t, warned(c.texts(id, "say two")))
	c.call("session/load", rootsParams(id, home, project, above))
	require.Equal(t, []string{above}, warned(c.texts(id, "say three")),
		"it is not recorded, and only the new root is told")
}

// warner is a scripted backend that warns of something while a session opens.
func warner() *scripted {
	return &scripted{opened: func(_ backend.Activation, h backend.Host) {
		_ = h.Update(context.Background(), backend.Warning(
			backend.Text("\n\nThe folder `x` is gone. Load\nthe session again.\n\nAnd this\n\n")))
	}}
}

// A client with notices is shown our own warnings as notices, which are not part of the
// conversation; any other one is sent a message.
//
// Clause A37.
func TestWarnings(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("HOME does not set the home directory on Windows")
	}
	home := folder(t)
	t.Setenv("HOME", home)
	with := connect(t, acp.Options{Backend: using(warner())})
	with.declaring(`{"session":{"notices":{}}}`)
	id := with.open(home)
	require.Equal(t, []string{"one"}, with.texts(id, "say one"))
	notices := slices.DeleteFunc(shown(t, with.messages(), id), func(u string) bool {
		return !strings.Contains(u, `"notice"`)
	})
	require.Len(t, notices, 3)
	require.JSONEq(t, `{"sessionUpdate":"notice","severity":"warning",`+
		`"title":"The folder `+"`x`"+` is gone.","description":"Load\nthe session again."}`,
		notices[0])
	require.JSONEq(t,
		`{"sessionUpdate":"notice","severity":"warning","title":"And this"}`, notices[1])
	require.Contains(t, notices[2], "is your home directory.\"")

	without := start(t, acp.Options{Backend: using(warner())})
	id = without.open(home)
	said := strings.Join(without.texts(id, "say one"), "|")
	require.Contains(t, strings.Join(texts(without.messages(), id), "|"),
		"\n\nThe folder `x` is gone. Load\nthe session again.\n\nAnd this\n\n")
	require.Contains(t, said, "is your home directory")
	require.NotContains(t, encode(without.messages()), `"notice"`)
}

// That an agent may have other sessions is told until one of its sessions has been used.
//
// Clause A31.
func TestDoubtAboutTheAgentIsToldOnce(t *testing.T) {
	r := &scripted{doubt: "The agent calls itself another."}
	store := memstore.New(t)
	for window := range 2 {
		c := start(t, acp.Options{Store: store, Backend: r.serve})
		first := c.open(folder(t))
		told := []string{r.doubt + "\n\n", "one"}
		require.Equal(t, told[window:], c.texts(first, "say one"))
		require.Equal(t, []string{"two"}, c.texts(first, "say two"))
		require.Equal(t, []string{"three"}, c.texts(c.open(folder(t)), "say three"))
		c.leave()
	}
}

// A turn that was given up does not take the notice of the session that was opened meanwhile.
func TestNoticeAfterTurnThatWasLeft(t *testing.T) {
	reached, goOn := make(chan struct{}), make(chan struct{})
	store := &hooked{Store: memstore.New(t), listing: func() {
		close(reached)
		<-goOn
	}}
	r := &scripted{doubt: "The agent calls itself another."}
	c := start(t, acp.Options{Store: store, Backend: r.serve}.With(acp.Tuning{CancelGrace: 1}))
	cwd := folder(t)
	id := c.open(cwd, folder(t))
	prompt := c.post("session/prompt", promptParams(id, "say one"))
	<-reached
	c.send(notification("session/cancel", idParams(id)))
	c.response(prompt)
	c.call("session/load", rootsParams(id, cwd))
	close(goOn)
	for range 100 { // it goes on meanwhile
		c.list(`{}`)
	}
	require.Contains(t, strings.Join(c.texts(id, "say two"), ""), "no longer has")
}
