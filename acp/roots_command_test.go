package acp_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/test/memstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// ownEntries are the adapter's commands as they are announced.
const ownEntries = `{"description":"Show the session's folders, or add or remove one; asks ` +
	`first","input":{"hint":"[add DIR | remove DIR]"},"name":"roots"},` +
	`{"description":"List the MCP servers, list what they offer, start one configured in a ` +
	`folder (asks first), or read a resource",` +
	`"input":{"hint":"[tools | start NAME | read SERVER URI]"},"name":"mcp"},` +
	`{"description":"Show the turns of this conversation, or copy it up to one of them; files are not changed",` +
	`"input":{"hint":"[TURN]"},"name":"fork"},` +
	`{"description":"Show what was changed in the folders since this session began","name":"diff"},` +
	`{"description":"Show or revoke what agents may do without asking","input":{"hint":"[revoke ID]"},"name":"permissions"}`

// say returns what the agent said to a prompt, as one text.
func (c *client) say(id, prompt string) string {
	c.t.Helper()
	return strings.Join(c.texts(id, prompt), "")
}

// roots returns the roots of the session's backend.
func (c *client) roots(id string) string {
	c.t.Helper()
	all := c.texts(id, "roots")
	return all[len(all)-1]
}

func bracketed(paths ...string) string { return "[" + strings.Join(paths, ", ") + "]" }

func TestRootsCommand(t *testing.T) {
	top := folder(t)
	one, two, lib := filepath.Join(top, "one", "app"), filepath.Join(top, "two", "app"),
		filepath.Join(top, "lib")
	for _, dir := range []string{one, two, lib} {
		require.NoError(t, os.MkdirAll(dir, 0o700))
	}
	spelled := filepath.Join(top, "spelled")
	require.NoError(t, os.Symlink(lib, spelled))
	c := start(t, acp.Options{Folders: func(workspace.Dir) []acp.Folder {
		return []acp.Folder{{Path: two, Setting: "--dir"},
			{Path: spelled, Setting: "workspaces[0] in config.json"}}
	}})
	said := c.say(c.open(one), "/roots")
	for _, want := range []string{
		"Folder 0: **`one/app`**, the working directory", "Folder 1: **`two/app`**\n",
		"Folder 2: **`spelled`**\n",
		"- path: `" + spelled + "`\n- real path: `" + lib + "`\n- URI: `file://" +
			filepath.ToSlash(lib) + "`\n- from: workspaces[0] in config.json\n- state: ok\n",
		"- from: --dir\n",
	} {
		require.Contains(t, said, want)
	}
	id := c.open(one, two)
	require.Contains(t, c.say(id, "  /roots \n"), "- from: zed\n", "the name of the client")
	require.NoError(t, os.Rename(two, filepath.Join(top, "moved")))
	require.Contains(t, c.say(id, "/roots"), "- state: moved")
	for _, wrong := range []string{"/roots add", "/roots remove ", "/roots ../x"} {
		require.Contains(t, c.say(id, wrong), "Type `/roots` to see the folders")
	}
}

// Clause A33.
func TestAddFolder(t *testing.T) {
	r := &scripted{}
	options := acp.Options{Backend: using(r), Store: memstore.New(t),
		ConsentDir: filepath.Join(t.TempDir(), "consents")}
	c := start(t, options)
	top := folder(t)
	cwd, shared, link := filepath.Join(top, "cwd"), filepath.Join(top, "shared"),
		filepath.Join(top, "link")
	for _, dir := range []string{cwd, shared} {
		require.NoError(t, os.Mkdir(dir, 0o700))
	}
	require.NoError(t, os.Symlink(shared, link))
	id, other := c.open(cwd), c.open(cwd)

	c.permit("reject-once")
	require.Equal(t, "Nothing was added.\n", c.say(id, "/roots add ../link"))
	require.Contains(t, string(c.questions()[0].Params), shared, "the resolved path is shown")
	require.NotContains(t, string(c.questions()[0].Params), link)
	require.Equal(t, bracketed(cwd), c.roots(id))

	c.permit("allow-once")
	require.Equal(t, "Added `"+shared+"`.\n", c.say(id, `/roots add "../link"`))
	require.Equal(t, bracketed(cwd, shared), c.roots(id))
	require.Equal(t, []string{shared}, c.find(id).AdditionalDirectories)
	require.Contains(t, r.noted(), "open session/resume "+bracketed(cwd, shared)+" state=")
	require.Contains(t, c.say(id, "/roots add "+shared), "is a folder of this session already")
	require.Contains(t, c.say(id, "/roots"), "- from: /roots add (acp-agent permissions revoke ")

	// The session keeps it, others in the same directory do not have it.
	for _, method := range []string{"session/load", "session/resume"} {
		c.after(method, id, cwd, nil)
		require.Equal(t, bracketed(cwd, shared), c.roots(id), method)
	}
	require.Equal(t, bracketed(cwd), c.roots(c.after("session/fork", id, cwd, nil)))
	require.Equal(t, bracketed(cwd), c.roots(c.after("session/load", other, cwd, nil)))
	require.Equal(t, bracketed(cwd), c.roots(c.open(cwd)))

	// Always: every session in the directory has it, unless the client says otherwise.
	c.permit("allow-always")
	c.say(other, "/roots add ../shared")
	again := start(t, options)
	for _, method := range []string{"session/new", "session/load", "session/resume",
		"session/fork"} {
		require.Equal(t, bracketed(cwd, shared), again.roots(again.after(method, other, cwd, nil)),
			method)
		require.Equal(t, bracketed(cwd), again.roots(again.after(method, other, cwd, []string{})),
			method)
	}
	require.Equal(t, bracketed(top), again.roots(again.open(top)), "only in this directory")
	again.permit("allow-always")
	added := again.open(cwd)
	require.Contains(t, again.say(added, "/roots remove shared"), "Removed `"+shared+"`")
	require.Equal(t, bracketed(cwd), again.roots(added))
	require.Equal(t, bracketed(cwd), again.roots(again.open(cwd)), "forgotten")

	again.call("session/delete", idParams(id))
	left, err := os.ReadDir(options.ConsentDir)
	require.NoError(t, err)
	require.Empty(t, left, "a deleted session leaves nothing")
}

// Clause A33.
func TestRemoveFolderHoweverItIsWritten(t *testing.T) {
	cwd, lib := folder(t), folder(t)
	c := start(t, acp.Options{Folders: func(workspace.Dir) []acp.Folder {
		return []acp.Folder{{Path: lib + "/./", Setting: "--dir"}}
	}})
	c.permit("allow-once")
	id := c.open(cwd)
	require.Contains(t, c.say(id, "/roots remove "+lib), "Removed `"+lib+"`")
	require.Equal(t, bracketed(cwd), c.roots(id))
}

// A list of the client replaces what the user did with the folders of a session, so the user is
// told about it.
//
// Clause A33.
func TestFolderChangesInSessionsWhoseClientNamesFolders(t *testing.T) {
	cwd, a, b := folder(t), folder(t), folder(t)
	c := start(t, acp.Options{ConsentDir: filepath.Join(t.TempDir(), "consents")})
	c.permit("allow-once")
	const warning = " Your editor names the folders of this session itself: when it opens the " +
		"session again, it uses its own list.\n"
	named := c.open(cwd, a)
	require.Contains(t, c.say(named, "/roots add "+b), "Added `"+b+"`."+warning)
	require.Contains(t, c.say(named, "/roots remove "+a), "Removed `"+a+"`."+warning)
	c.call("session/load",
		encode(map[string]any{"sessionId": named, "cwd": cwd, "mcpServers": []any{}}))
	require.NotContains(t, c.say(named, "/roots add "+a), warning)
	require.NotContains(t, c.say(c.open(cwd), "/roots add "+a), warning)
}

// Clause A12.
func TestCancelWhileFolderIsAdded(t *testing.T) {
	r := &scripted{}
	c := start(t,
		acp.Options{Backend: using(r), ConsentDir: filepath.Join(t.TempDir(), "consents")})
	c.permit("allow-always")
	cwd, a := folder(t), folder(t)
	link := filepath.Join(folder(t), "link")
	require.NoError(t, os.Symlink(folder(t), link))
	id := c.open(cwd, link)
	require.NoError(t, os.Remove(link))
	// there is something to tell the user once the folder is added
	require.NoError(t, os.Symlink(folder(t), link))
	opening, finish := make(chan struct{}), make(chan struct{})
	r.mu.Lock()
	r.opened = func(backend.Activation, backend.Host) {
		close(opening)
		<-finish
	}
	r.mu.Unlock()
	prompt := c.post("session/prompt", promptParams(id, "/roots add "+a))
	<-opening
	c.send(notification("session/cancel", idParams(id)))
	c.list(`{}`) // the cancellation has been read
	r.mu.Lock()
	r.opened = nil
	r.mu.Unlock()
	close(finish)
	require.Equal(t, "cancelled", c.response(prompt).stopReason(t))
	require.Equal(t, []string{link, a}, c.find(id).AdditionalDirectories)
	require.Equal(t, bracketed(cwd, a), c.roots(c.open(cwd)),
		"what the session was given is remembered as the user said")
}

// Clause A10.
func TestAnsweredQuestionAboutFolder(t *testing.T) {
	c := start(t, acp.Options{})
	cwd, a := folder(t), folder(t)
	for answer, status := range map[string]string{"allow-once": "completed",
		"reject-once": "failed", "cancelled": "failed"} {
		id := c.open(cwd)
		c.permit(answer)
		shown := func(do func()) (statuses []string) {
			before := len(c.messages())
			do()
			for _, m := range c.messages()[before:] {
				var p struct {
					SessionID string
					Update    struct{ SessionUpdate, Status string }
				}
				if json.Unmarshal(m.Params, &p) == nil && p.SessionID == id &&
					strings.HasPrefix(p.Update.SessionUpdate, "tool_call") {
					statuses = append(statuses, p.Update.SessionUpdate+" "+p.Update.Status)
				}
			}
			return statuses
		}
		want := []string{"tool_call pending", "tool_call_update " + status}
		require.Equal(t, want, shown(func() {
			c.call("session/prompt", promptParams(id, "/roots add "+a))
		}), answer)
		replayed := shown(func() { c.call("session/load", rootsParams(id, cwd)) })
		require.Equal(t, want, replayed, answer)
	}
}

// Clause A29.
func TestTitleOfSessionThatBeginsWithRoots(t *testing.T) {
	c := start(t, acp.Options{})
	c.permit("allow-once")
	id := c.open(folder(t))
	c.say(id, "/roots add "+folder(t))
	require.Empty(t, c.find(id).Title)
	c.say(id, "say hello")
	require.Equal(t, "say hello", c.find(id).Title)
}

// Clause A24.
func TestFolderChangesThatFail(t *testing.T) {
	r := &scripted{}
	top := folder(t)
	denied, err := workspace.ParseDir(filepath.Join(top, "denied"))
	require.NoError(t, err)
	c := start(t, acp.Options{
		Backend: using(r),
		Workspace: workspace.Options{MaxRoots: 3,
			Policy: workspace.Policy{Deny: []workspace.Dir{denied}}},
	})
	for _, name := range []string{"cwd", "a", "b", "denied", "other"} {
		require.NoError(t, os.Mkdir(filepath.Join(top, name), 0o700))
	}
	require.NoError(t, os.WriteFile(filepath.Join(top, "file"), nil, 0o600))
	cwd, a, b := filepath.Join(top, "cwd"), filepath.Join(top, "a"), filepath.Join(top, "b")
	id := c.open(cwd, a)
	unchanged := func(what string) {
		t.Helper()
		require.Equal(t, bracketed(cwd, a), c.roots(id), what)
		require.Equal(t, []string{a}, c.find(id).AdditionalDirectories, what)
	}
	c.permit("allow-once")
	for argument, why := range map[string]string{"../missing": "does not exist",
		"../file": "is not a folder", "../denied": "refused by policy", "a\x00b": "NUL"} {
		require.Contains(t, c.say(id, "/roots add "+argument), why)
		unchanged(argument)
	}
	require.Contains(t, c.say(id, "/roots remove ../b"), "is not a folder of this session")
	require.Contains(t, c.say(id, "/roots remove ."), "cannot be removed")
	require.Empty(t, c.questions(), "nobody is asked about what is impossible")

	c.permit("cancelled")
	require.Equal(t, "cancelled",
		c.try("session/prompt", promptParams(id, "/roots add ../b")).stopReason(t))
	unchanged("cancelled question")

	c.permit("allow-once")
	r.refuse = &backend.Error{Code: -32000, Message: "log in first"}
	require.Contains(t, c.say(id, "/roots add ../b"), "log in first")
	r.refuse = nil
	unchanged("failed")

	// The path is checked again after the answer.
	c.swap(func() {
		require.NoError(t, os.Remove(b))
		require.NoError(t, os.Symlink(filepath.Join(top, "other"), b))
	})
	require.Contains(t, c.say(id, "/roots add ../b"),
		"it now leads to "+filepath.Join(top, "other"))
	unchanged("replaced folder")

	c.permit("allow-once")
	c.say(id, "/roots add ../other")
	require.Contains(t, c.say(id, "/roots add "+top),
		"were not changed: the new list has too many folders: the limit is 3")
	require.Contains(t, c.say(id, "/roots remove ../a"), "Removed")
	require.Equal(t, bracketed(cwd, filepath.Join(top, "other")), c.roots(id))
}

// swap calls do when the user is asked, and then allows it once.
func (c *client) swap(do func()) {
	c.answer(func(m message) string {
		if m.Method != "session/request_permission" {
			return ""
		}
		do()
		return `{"outcome":{"outcome":"selected","optionId":"allow-once"}}`
	})
}

// Clause A12.
func TestRootsCommandAmongOtherRequests(t *testing.T) {
	c := start(t, acp.Options{})
	cwd, a, b := folder(t), folder(t), folder(t)
	asked := func(id string) (prompt string) {
		t.Helper()
		before := len(c.questions())
		prompt = c.post("session/prompt", promptParams(id, "/roots add "+b))
		require.Eventually(t, func() bool {
			return len(c.questions()) > before
		}, patience, time.Millisecond)
		return prompt
	}
	c.permit("")
	for what, end := range map[string]func(id string){
		"cancel": func(id string) { c.send(notification("session/cancel", idParams(id))) },
		"load":   func(id string) { c.call("session/load", rootsParams(id, cwd, a)) },
		"close":  func(id string) { c.call("session/close", idParams(id)) },
		"delete": func(id string) { c.call("session/delete", idParams(id)) },
	} {
		id := c.open(cwd, a)
		prompt := asked(id)
		queued, rejected := c.busy(id)
		require.Equal(t, "turn_in_progress", rejected.reason(t), what)
		end(id)
		require.Equal(t, "cancelled", c.response(prompt).stopReason(t), what)
		require.Equal(t, "cancelled", c.response(queued).stopReason(t), what)
		if what != "delete" {
			require.Equal(t, []string{a}, c.find(id).AdditionalDirectories, what)
		}
	}
	// Requests behind the prompt find the session with its new folders.
	c.permit("allow-once")
	id := c.open(cwd)
	c.say(id, "/roots add "+a)
	require.Nil(t, c.try("session/set_mode", idParams(id)).Error)
	require.Equal(t, bracketed(cwd, a), c.roots(id))
	require.Equal(t, "cancelled", func() string {
		prompt := c.beginTurn(id, "wait", "waiting")
		c.send(notification("session/cancel", idParams(id)))
		return c.response(prompt).stopReason(t)
	}())
	// The turn is stored in one piece.
	c.after("session/close", id, cwd, nil)
	before := len(c.messages())
	c.call("session/load", rootsParams(id, cwd, a))
	replayed := texts(c.messages()[before:], id)
	require.Contains(t, replayed, "Added `"+a+"`.\n")
}

// Clauses A12, M3.
func TestAddedFolderReachesServers(t *testing.T) {
	notOverRemote(t, namesServers)
	c := served(t, acp.Options{})
	c.permit("allow-once")
	a, b := folder(t), folder(t)
	id := c.serve([]string{a}, server("one", "files"))
	before := c.use(id, "one.where")
	require.Equal(t, uris(t, a), c.use(id, "one.roots"))
	require.Contains(t, c.say(id, "/roots add "+b), "Added")
	require.Equal(t, uris(t, a, b), c.use(id, "one.roots"))
	require.Equal(t, 1, c.changes(id, "one"))
	require.Equal(t, before, c.use(id, "one.where"), "the server keeps running")
	require.Contains(t, c.say(id, "/mcp"), "MCP server **`one`** (stdio): ready\n")
	require.Contains(t, c.say(id, "/roots remove "+b), "Removed")
	got := c.texts(id, "use one.roots") // the user is also told that the server is restarted
	require.Equal(t, uris(t, a), got[len(got)-1])
}

func announced(t *testing.T, m message) (names []string) {
	t.Helper()
	var p struct {
		Update struct{ AvailableCommands []struct{ Name string } }
	}
	require.NoError(t, json.Unmarshal(m.Params, &p))
	for _, c := range p.Update.AvailableCommands {
		names = append(names, c.Name)
	}
	return names
}

// Clause A33.
func TestWorkspaceFile(t *testing.T) {
	top := folder(t)
	cwd, shared, skills := filepath.Join(top, "cwd"), filepath.Join(top, "shared"),
		filepath.Join(top, "skills")
	for _, dir := range []string{cwd, shared, skills} {
		require.NoError(t, os.Mkdir(dir, 0o700))
	}
	link := filepath.Join(top, "link")
	require.NoError(t, os.Symlink(skills, link))
	file := filepath.Join(cwd, "my app.code-workspace")
	require.NoError(t, os.WriteFile(file, []byte(`{"folders":[{"path":"."},{"path":"../shared"},`+
		`{"path":"../link"},]} // mine`), 0o600))
	const mention = "`my app.code-workspace` lists 2 more folders: `/roots add my " +
		"app.code-workspace`\n"
	store := memstore.New(t)
	c := start(t, acp.Options{Store: store})

	id := c.open(cwd)
	require.Empty(t, texts(c.messages(), id), "not before the first prompt")
	require.Contains(t, c.say(id, "say one"), mention)
	require.Equal(t, bracketed(cwd), c.roots(id), "a file in a folder adds nothing by itself")
	require.NotContains(t, c.say(id, "say two"), mention)
	c.call("session/load", rootsParams(id, cwd))
	require.NotContains(t, c.say(id, "say three"), mention, "once, and it is not recorded")
	require.NotContains(t, c.say(c.open(cwd, shared, skills, link), "say one"), mention,
		"the session has them")
	require.NotContains(t, c.say(c.open(shared, cwd), "say one"), mention,
		"only the working directory counts")

	c.permit("reject-once")
	require.Contains(t, c.say(id, "/roots add my app.code-workspace"), "Nothing was added.\n")
	require.Equal(t, bracketed(cwd), c.roots(id))
	c.permit("allow-once")
	asked := len(c.questions())
	require.Contains(t, c.say(id, "/roots add my app.code-workspace"),
		"Added `"+shared+"`, `"+skills+"`.\n")
	questions := c.questions()[asked:]
	require.Len(t, questions, 1, "one question")
	require.Contains(t, string(questions[0].Params), shared+`\n`+skills, "with each resolved path")
	require.Equal(t, bracketed(cwd, shared, skills), c.roots(id))
	require.Contains(t, c.say(id, "/roots add "+file),
		"lists no folders that this session does not have")

	require.NoError(t, os.WriteFile(filepath.Join(cwd, "notes.txt"), nil, 0o600))
	require.Contains(t, c.say(id, "/roots add notes.txt"), "is not a workspace file")
	require.NoError(t, os.WriteFile(filepath.Join(cwd, "go.work"), []byte("use .\n"), 0o600))
	require.Contains(t, c.say(id, "/roots add go.work"),
		"lists no folders that this session does not have")
	require.NoError(t, os.WriteFile(filepath.Join(top, "app.code-workspace"),
		[]byte(`{"folders":[{"path":"shared"}]}`), 0o600))
	require.Contains(t, c.say(id, "/roots add ../app.code-workspace"), "is not a folder",
		"what is outside is not read")

	// A session that was never prompted is told when it is opened again.
	unprompted := c.open(cwd)
	c.leave()
	c = start(t, acp.Options{Store: store})
	c.call("session/resume", rootsParams(unprompted, cwd))
	require.Contains(t, c.say(unprompted, "say one"), mention)
}

// Clause A33.
func TestWorkspaceFileWithMissingFolders(t *testing.T) {
	top := folder(t)
	cwd, shared, gone := filepath.Join(top, "cwd"), filepath.Join(top, "shared"),
		filepath.Join(top, "gone")
	for _, dir := range []string{cwd, shared} {
		require.NoError(t, os.Mkdir(dir, 0o700))
	}
	require.NoError(t, os.WriteFile(filepath.Join(cwd, "a.code-workspace"),
		[]byte(`{"folders":[{"path":"../gone"},{"path":"../shared"}]}`), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(cwd, "go.work"), []byte("use ../gone\n"), 0o600))
	c := start(t, acp.Options{})
	id := c.open(cwd)
	c.permit("allow-once")
	said := c.say(id, "/roots add a.code-workspace")
	require.Contains(t, said, "Left out: ")
	require.Contains(t, said, gone)
	require.Contains(t, said, "Added `"+shared+"`.")
	require.Equal(t, bracketed(cwd, shared), c.roots(id))
	require.NotContains(t, string(c.questions()[0].Params), gone)

	said = c.say(id, "/roots add go.work")
	require.Contains(t, said, "Left out: ")
	require.Contains(t, said, "Nothing was added.")
	require.Len(t, c.questions(), 1)
}

// A path is taken as people paste it: in quotes, as a file URI, and as a terminal inserts it.
func TestRootsAddTakesPastedPaths(t *testing.T) {
	top := folder(t)
	dir := filepath.Join(top, "my lib [1]")
	require.NoError(t, os.Mkdir(dir, 0o700))
	for name, argument := range map[string]string{
		"plain":  dir,
		"quoted": `"` + dir + `"`,
		"URI":    "file://" + strings.NewReplacer(" ", "%20", "[", "%5B", "]", "%5D").Replace(dir),
		"host":   "file://localhost" + strings.ReplaceAll(dir, " ", "%20"),
		"short":  "FILE:" + strings.ReplaceAll(dir, " ", "%20"),
		"escape": strings.ReplaceAll(dir, " ", `\ `),
	} {
		t.Run(name, func(t *testing.T) {
			if runtime.GOOS == "windows" && name != "plain" && name != "quoted" {
				t.Skip("paths have no slash before them")
			}
			c := start(t, acp.Options{})
			c.permit("allow-once")
			id := c.open(top)
			require.Contains(t, c.say(id, "/roots add "+argument), "Added `"+dir+"`.")
		})
	}
}

// A folder that was added to be read only stays so when the editor names it, in this session and,
// if the user wants that, in later ones; removing and adding it changes that.
//
// Clause A39.
func TestRootsAddReadOnly(t *testing.T) {
	cwd, dep := folder(t), folder(t)
	c := start(t, acp.Options{ConsentDir: t.TempDir()})
	c.permit("allow-always")
	id := c.open(cwd)
	readOnly := func(id string) bool {
		shown := c.say(id, "/roots")
		require.Contains(t, shown, dep)
		return strings.Contains(shown, "read-only")
	}
	require.Contains(t, c.say(id, "/roots add --read-only "+dep), "Added `"+dep+"`.")
	require.True(t, readOnly(id))
	require.True(t, readOnly(c.open(cwd)))
	require.True(t, readOnly(c.open(cwd, dep)))
	require.Contains(t, c.say(id, "/roots remove "+dep), "Removed")
	require.Contains(t, c.say(id, "/roots add "+dep), "Added")
	require.False(t, readOnly(id))
	require.False(t, readOnly(c.open(cwd, dep)))
}

// The commands of acp-agent are announced for a backend that announces none.
func TestCommandsOfSilentBackend(t *testing.T) {
	c := start(t, acp.Options{Backend: using(&scripted{})})
	c.open(folder(t))
	c.await(0, func(m message) bool {
		return strings.Contains(string(m.Params), "available_commands_update")
	})
}
