package agents

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/conform/rawrpc"
	"github.com/acp-agent/acp-agent/internal/test/interop/modelserver"
	"github.com/acp-agent/acp-agent/internal/test/interop/program"
	"github.com/acp-agent/acp-agent/internal/test/logtest"
	"github.com/acp-agent/acp-agent/internal/test/npmtest"
)

var record = flag.Bool("record", false, "run the editors of testdata/editors and record what they send; needs ACP_AGENT_NVIM and "+
	"ACP_AGENT_EMACS, their programs, and ACP_AGENT_PLUGINS, a directory with the git checkouts of their plugins")

// recorded is an editor that cannot be installed for tests. A driver in testdata/editors runs it
// with its configuration from the page, as a person would: it opens a session, types prompts, and
// grants permissions; in another process it opens the session again. What it sent is in the
// transcript of the same name.
type recorded struct {
	name     string
	section  string // of the page
	snippets int    // of this section, which make up the configuration
	driver   string
	program  string   // the environment variable that names it
	args     []string // before the driver
	plugins  []string
	roots    string // what people type for /roots
	sends    bool   // it sends folders itself
	// opencode says that the agent is opencode, rather than its stand-in, which starts at once.
	// make test leaves the prompts for its model out, and also takes the stand-in.
	opencode bool
}

var recordedEditors = []recorded{
	{name: "codecompanion", section: "Neovim (CodeCompanion)", snippets: 1, driver: "codecompanion.lua", program: "ACP_AGENT_NVIM",
		args: []string{"--headless", "-u", "NONE", "-S"}, plugins: []string{"plenary.nvim", "codecompanion.nvim"}, roots: `\roots`, opencode: true},
	{name: "agentic", section: "Neovim (agentic.nvim)", snippets: 1, driver: "agentic.lua", program: "ACP_AGENT_NVIM",
		args: []string{"--headless", "-u", "NONE", "-S"}, plugins: []string{"agentic.nvim"}, roots: "/roots"},
	{name: "agent-shell", section: "Emacs (agent-shell)", snippets: 1, driver: "agent-shell.el", program: "ACP_AGENT_EMACS",
		args: []string{"-Q", "--batch", "-l"}, plugins: []string{"acp.el", "shell-maker", "agent-shell"}, roots: "/roots"},
	{name: "agent-shell-decorator", section: "Emacs (agent-shell)", snippets: 2, driver: "agent-shell.el", program: "ACP_AGENT_EMACS",
		args: []string{"-Q", "--batch", "-l"}, plugins: []string{"acp.el", "shell-maker", "agent-shell"}, roots: "/roots", sends: true},
}

// The files of a transcript. Its comment says what was run.
const (
	snippetFile = "snippet"
	firstFile   = "first process"
	secondFile  = "second process"
)

// path returns the path of the transcript.
func (r recorded) path() string { return filepath.Join("testdata", "editors", r.name+".txtar") }

// Clause A33.
func TestRecordedEditorsWorkInSeveralFolders(t *testing.T) {
	for _, r := range recordedEditors {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			if *record {
				r.record(t)
			}
			archive, err := txtar.ParseFile(r.path())
			require.NoError(t, err)
			files := map[string]string{}
			for _, f := range archive.Files {
				files[f.Name] = string(f.Data)
			}
			require.Equal(t, r.snippet(t), files[snippetFile], "docs/editors.md has changed: record again")

			s := r.onProject(t)
			args := arguments(t, files[snippetFile])
			var ids sessionIDs
			first, second, edits := files[firstFile], files[secondFile], true
			if r.opencode && !*survey {
				first, second, edits = withoutModel(t, first), withoutModel(t, second), false
			}
			said := s.replay(t, args, &ids, first)
			require.Contains(t, said, shown(s.skills()))
			if edits {
				require.Equal(t, "pear\n", content(t, s.skills()))
			}
			said = s.replay(t, args, &ids, second)
			require.Contains(t, said, shown(s.skills()), "the session still has its third folder")
			if !r.sends {
				require.Contains(t, said, shown(s.notes()), "and the one that was added in it")
			}
			if edits {
				require.Equal(t, "plum\n", content(t, s.skills()))
			}
			if edits && !r.sends {
				require.Equal(t, "plum\n", content(t, s.notes()))
			}
		})
	}
}

// withoutModel removes the prompts for a scripted model from a transcript, up to their responses.
func withoutModel(t *testing.T, transcript string) string {
	t.Helper()
	var kept strings.Builder
	removed := ""
	for line := range strings.Lines(transcript) {
		var sent rawrpc.Message
		if message, ok := strings.CutPrefix(line, "> "); ok {
			require.NoError(t, json.Unmarshal([]byte(message), &sent), line)
		}
		switch {
		case removed != "" && line == "< "+removed+"\n":
			removed = ""
		case removed == "" && sent.Method == "session/prompt" && strings.Contains(line, `\nmodel: `):
			removed = string(sent.ID)
		case removed == "":
			kept.WriteString(line)
		}
	}
	return kept.String()
}

// TestAcpxWorksInSeveralFolders runs acpx with its configuration from the page.
//
// Clause A33.
func TestAcpxWorksInSeveralFolders(t *testing.T) {
	t.Parallel()
	bin := filepath.Dir(npmtest.File(t, "testdata/node-acpx", ".bin/acpx"))
	s := onQuickProject(t)
	s.configure(t)
	sum := sha256.Sum256([]byte(s.home))
	t.Cleanup(func() { require.NoError(t, os.RemoveAll("/tmp/acpx-"+hex.EncodeToString(sum[:])[:10])) }) // its sockets
	config := filepath.Join(s.home, ".acpx", "config.json")
	require.NoError(t, os.MkdirAll(filepath.Dir(config), 0o700))
	require.NoError(t, os.WriteFile(config, []byte(installed(snippets(t, "acpx")[0])), 0o600))
	try := func(args ...string) (string, error) {
		cmd := exec.CommandContext(within(t), filepath.Join(bin, "acpx"), args...)
		cmd.Dir = s.app()
		cmd.Env = append(append(os.Environ(), s.env...), "PATH="+bin+string(os.PathListSeparator)+filepath.Join(s.home, "bin")+string(os.PathListSeparator)+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	acpx := func(args ...string) string {
		out, err := try(args...)
		for tries := 1; tries < 10 && err != nil && strings.Contains(out, "Session queue owner failed to start"); tries++ {
			out, err = try(args...) // acpx waits six seconds until Node has started, and has sent nothing
		}
		require.NoError(t, err, "acpx %q: %s", args, out)
		return out
	}
	t.Cleanup(func() { _, _ = try("opencode", "sessions", "close") }) // the process that a prompt leaves behind
	var made struct{ AcpxSessionID string }
	require.NoError(t, json.Unmarshal([]byte(acpx("--format", "json", "--json-strict", "opencode", "sessions", "new")), &made))
	acpx("--approve-all", "opencode", "/roots add ../notes")
	// Each command starts Node, and changes a file only in one of the session's folders.
	acpx("--approve-all", "opencode", s.change("banana", "pear", s.skills())[0])
	require.Equal(t, "pear\n", content(t, s.skills()))
	acpx("opencode", "sessions", "close")
	acpx("opencode", "sessions", "new", "--resume-session", made.AcpxSessionID)
	require.Contains(t, acpx("opencode", "/roots"), shown(s.notes()))
	acpx("--approve-all", "opencode", s.change("banana", "plum", s.notes())[0])
	require.Equal(t, "plum\n", content(t, s.notes()))
}

// project is a home with the folders of the page: an editor in the first sends no others.
type project struct {
	home   string
	env    []string
	change func(from, to string, folders ...string) []string // returns prompts that change the files of folders
}

// onProject returns a project in which the command "opencode" runs opencode.
func onProject(t *testing.T) project {
	t.Helper()
	s := onStage(t, opencode)
	p := project{home: s.home, env: s.env, change: func(from, to string, folders ...string) []string {
		var orders []modelserver.Order
		for _, dir := range folders {
			orders = append(orders, modelserver.Edit(fruit(dir), from, to))
		}
		return []string{modelserver.Prompt("Please change the fruit.", append(orders, modelserver.Say("Done."))...)}
	}}
	p.lay(t)
	return p
}

// onQuickProject returns a project in which the command "opencode" runs another acp-agent, with a
// scripted model.
func onQuickProject(t *testing.T) project {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the stand-in for opencode is a shell script")
	}
	home := folder(t, "")
	p := project{home: home, change: func(_, to string, folders ...string) []string {
		var prompts []string
		for _, dir := range folders {
			prompts = append(prompts, modelserver.Prompt("Change the fruit.", modelserver.Run("echo "+to+" >"+fruit(dir))))
		}
		return prompts
	}}
	scripted, err := modelserver.Start()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, scripted.Close()) })
	config := fmt.Sprintf(`{"models": {"scripted": {"baseURL": %q}}}`, scripted.URL()+"/v1")
	require.NoError(t, os.WriteFile(filepath.Join(home, "stand-in.json"), []byte(config), 0o600))
	bin := filepath.Join(home, "bin")
	p.env = []string{"HOME=" + home, "XDG_CONFIG_HOME=" + home + "/.config", "XDG_DATA_HOME=" + home + "/.local/share",
		"XDG_STATE_HOME=" + home + "/.local/state", "XDG_CACHE_HOME=" + home + "/.cache", "PATH=" + bin + string(os.PathListSeparator) + os.Getenv("PATH")}
	require.NoError(t, os.MkdirAll(bin, 0o755))
	script := fmt.Sprintf("#!/bin/sh\nACP_AGENT_TRACE= ACP_AGENT_STATE_DIR='%s/stand-in' exec '%s' --config '%[1]s/stand-in.json' --model scripted\n", home, program.Path())
	require.NoError(t, os.WriteFile(filepath.Join(bin, "opencode"), []byte(script), 0o755))
	p.lay(t)
	return p
}

// lay makes the project's folders.
func (p project) lay(t *testing.T) {
	t.Helper()
	for _, dir := range []string{p.app(), filepath.Join(p.home, "src", "shared"), p.skills(), p.notes()} {
		require.NoError(t, os.MkdirAll(dir, 0o755))
		require.NoError(t, os.WriteFile(fruit(dir), []byte("banana\n"), 0o644))
	}
	// CodeCompanion sends it before what the user types.
	require.NoError(t, os.WriteFile(filepath.Join(p.app(), "AGENTS.md"), []byte("Fruit is to be washed.\n"), 0o644))
}

func (p project) app() string    { return filepath.Join(p.home, "src", "app") }
func (p project) skills() string { return filepath.Join(p.home, "src", "skills") }

// notes returns a folder that the user adds in the session.
func (p project) notes() string { return filepath.Join(p.home, "src", "notes") }

// shown returns how /roots shows a folder.
func shown(dir string) string { return "- path: `" + dir + "`" }

// configure writes the configuration of the page.
func (p project) configure(t *testing.T) {
	t.Helper()
	path := filepath.Join(p.home, ".config", "acp-agent", "config.json")
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(snippets(t, "Folders")[0]), 0o644))
}

func (r recorded) onProject(t *testing.T) project {
	t.Helper()
	start := onQuickProject
	if r.opencode && *survey {
		start = onProject
	}
	p := start(t)
	if !r.sends {
		p.configure(t)
	}
	return p
}

// prompts returns what the user types in the two processes.
func (r recorded) prompts(p project) (first, second []string) {
	first, second = []string{r.roots}, []string{r.roots}
	folders := []string{p.skills()}
	if !r.sends {
		first = append(first, r.roots+" add ../notes")
		folders = append(folders, p.notes())
	}
	return append(first, p.change("banana", "pear", folders...)...), append(second, p.change("pear", "plum", folders...)...)
}

// editorsPage is the page whose snippets are tested.
const editorsPage = "../../../../docs/editors.md"

var fence = regexp.MustCompile("(?ms)^```[a-z]+\n(.*?)^```$")

// sections returns the sections of the page by title.
func sections(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(editorsPage)
	require.NoError(t, err)
	all := map[string]string{}
	for _, section := range strings.Split(string(text), "\n## ")[1:] {
		title, body, _ := strings.Cut(section, "\n")
		all[title] = body
	}
	return all
}

// snippets returns the snippets of a section of the page.
func snippets(t *testing.T, section string) []string {
	t.Helper()
	var all []string
	for _, m := range fence.FindAllStringSubmatch(sections(t)[section], -1) {
		all = append(all, m[1])
	}
	require.NotEmpty(t, all, "no snippet in section %q of %s", section, editorsPage)
	return all
}

func (r recorded) snippet(t *testing.T) string {
	t.Helper()
	return strings.Join(snippets(t, r.section)[:r.snippets], "")
}

// onPage is the path of the program in snippets.
const onPage = "/usr/local/bin/acp-agent"

// installed returns a snippet with the path of the program under test.
func installed(snippet string) string { return strings.ReplaceAll(snippet, onPage, program.Path()) }

var quotedString = regexp.MustCompile(`"([^"]*)"`)

// arguments returns the arguments of the program in a snippet: the strings that follow its path in
// the line, except keys.
func arguments(t *testing.T, snippet string) []string {
	t.Helper()
	_, rest, found := strings.Cut(snippet, `"`+onPage+`"`)
	require.True(t, found, snippet)
	line, _, _ := strings.Cut(rest, "\n")
	var args []string
	for _, m := range quotedString.FindAllStringSubmatch(strings.Replace(line, `"args":`, "", 1), -1) {
		args = append(args, m[1])
	}
	return args
}

// TestEditorsPage checks that each snippet for an editor is tested or said not to be, and that its
// command starts.
func TestEditorsPage(t *testing.T) {
	tested := map[string]int{"Folders": 1, "acpx": 1}
	for _, r := range recordedEditors {
		tested[r.section] = max(tested[r.section], r.snippets)
	}
	p := onQuickProject(t)
	for title, body := range sections(t) {
		found := fence.FindAllStringSubmatch(body, -1)
		if tested[title] == 0 && len(found) > 0 {
			require.Contains(t, body, "documentation; tell us if yours differs.", title)
		} else {
			require.Len(t, found, tested[title], "the snippets of section %q that are tested", title)
		}
		for _, m := range found {
			if !strings.Contains(m[1], onPage) {
				continue
			}
			args := arguments(t, m[1])
			for i, arg := range args {
				args[i] = strings.ReplaceAll(arg, "/usr/local/bin/opencode", "opencode")
			}
			require.Equal(t, []string{"--", "opencode", "acp"}, args[len(args)-3:], title)
			p.replay(t, args, &sessionIDs{}, `> {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`+"\n< 1\n")
		}
	}
}

// replay sends the program what an editor sent in one process, and returns the agent's messages.
// The program must answer and ask in the same order as then.
func (p project) replay(t *testing.T, args []string, sessions *sessionIDs, transcript string) string {
	t.Helper()
	var stderr logtest.Text
	agent, err := program.Start(program.Options{
		Command: append([]string{program.Path()}, args...), Dir: p.app(), Env: p.env, Stderr: &stderr,
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = agent.Kill() })
	c := &conversation{
		project: p, agent: agent, sessions: sessions, ids: map[string]json.RawMessage{}, asked: map[string]int{}, requests: map[string]rawrpc.Message{}, methods: map[string]string{},
	}
	for line := range strings.Lines(transcript) {
		c.step(t, strings.TrimSuffix(line, "\n"))
		if t.Failed() {
			break
		}
	}
	require.NoError(t, agent.CloseInput())
	code, err := agent.Wait(within(t))
	require.NoError(t, err)
	require.Zero(t, code, "standard error: %s", &stderr)
	var said strings.Builder
	for _, m := range agent.Messages() {
		require.NotContains(t, m.Raw, `"title":"Sharing`, "the title is what the user typed")
		var params struct {
			Update struct {
				SessionUpdate string
				Content       json.RawMessage
			}
		}
		if m.Method == "session/update" && json.Unmarshal(m.Params, &params) == nil && params.Update.SessionUpdate == "agent_message_chunk" {
			said.Write(params.Update.Content)
		}
	}
	return said.String()
}

// conversation is the replay of a transcript. A line "> JSON" is a message of the editor, "< ID"
// the response to its request, "< ID METHOD" a request of the agent. The editor's responses have
// the ids of the recording.
type conversation struct {
	project
	agent    *program.Process
	sessions *sessionIDs
	methods  map[string]string          // of the editor's requests, by id
	ids      map[string]json.RawMessage // of the agent's requests, by that in the recording
	requests map[string]rawrpc.Message  // the agent's requests, by id in the recording
	asked    map[string]int             // where to look for the agent's next request, by method
}

func (c *conversation) step(t *testing.T, line string) {
	t.Helper()
	if message, ok := strings.CutPrefix(line, "> "); ok {
		c.send(t, strings.ReplaceAll(c.sessions.expand(message), "$HOME", c.home))
		return
	}
	id, method, isRequest := strings.Cut(strings.TrimPrefix(line, "< "), " ")
	if !isRequest {
		m, _, err := c.agent.Await(within(t), 0, func(m rawrpc.Message) bool { return m.IsResponse(id) })
		require.NoError(t, err, "waiting for the response to %s", c.methods[id])
		require.Nil(t, m.Error, m.Raw)
		c.sessions.note(m)
		return
	}
	m, at, err := c.agent.Await(within(t), c.asked[method], func(m rawrpc.Message) bool { return m.Method == method && len(m.ID) > 0 })
	require.NoError(t, err, "waiting for %s", method)
	c.asked[method] = at + 1
	c.ids[id], c.requests[id] = m.ID, m
}

// send sends a message of the editor. If it answers that a file was written, that is done first.
func (c *conversation) send(t *testing.T, line string) {
	t.Helper()
	var m map[string]json.RawMessage
	require.NoError(t, json.Unmarshal([]byte(line), &m), line)
	id := string(m["id"])
	if method := m["method"]; method != nil {
		c.methods[id] = string(method)
	} else {
		request := c.requests[id]
		if request.Method == "fs/write_text_file" {
			var file struct{ Path, Content string }
			require.NoError(t, json.Unmarshal(request.Params, &file))
			require.NoError(t, os.WriteFile(file.Path, []byte(file.Content), 0o644))
		}
		require.Contains(t, c.ids, id, line)
		m["id"] = c.ids[id]
		text, err := json.Marshal(m)
		require.NoError(t, err)
		line = string(text)
	}
	require.NoError(t, c.agent.Send(line))
}

// sessionIDs are the ids of a transcript's sessions, $SESSION1 the first.
type sessionIDs []string

// note notes the session that a response creates, if any.
func (s *sessionIDs) note(response rawrpc.Message) {
	var result struct{ SessionID string }
	if json.Unmarshal(response.Result, &result) == nil && result.SessionID != "" {
		*s = append(*s, result.SessionID)
	}
}

func (s sessionIDs) expand(line string) string {
	for i, id := range s {
		line = strings.ReplaceAll(line, fmt.Sprint("$SESSION", i+1), id)
	}
	return line
}

func (s sessionIDs) fold(line string) string {
	for i, id := range s {
		line = strings.ReplaceAll(line, id, fmt.Sprint("$SESSION", i+1))
	}
	return line
}

// record runs the editor twice and writes its transcript.
func (r recorded) record(t *testing.T) {
	t.Helper()
	editor, plugins := os.Getenv(r.program), os.Getenv("ACP_AGENT_PLUGINS")
	if editor == "" || plugins == "" {
		t.Skipf("set %s to the editor and ACP_AGENT_PLUGINS to its plugins to record this", r.program)
	}
	p := r.onProject(t)
	snippet := filepath.Join(p.home, "snippet"+filepath.Ext(r.driver))
	require.NoError(t, os.WriteFile(snippet, []byte(installed(r.snippet(t))), 0o644))
	driver, err := filepath.Abs(filepath.Join("testdata", "editors", r.driver))
	require.NoError(t, err)

	about := []string{firstLine(t, editor, "--version")}
	var dirs []string
	for _, name := range r.plugins {
		dir := filepath.Join(plugins, name)
		dirs = append(dirs, dir)
		about = append(about, firstLine(t, "git", "-C", dir, "log", "-1", "--format="+name+" %h of %cs"))
	}
	archive := &txtar.Archive{
		Comment: []byte("Recorded with " + strings.Join(about, ", ") + ".\n\n"),
		Files:   []txtar.File{{Name: snippetFile, Data: []byte(r.snippet(t))}},
	}
	first, second := r.prompts(p)
	var ids sessionIDs
	for i, prompts := range [][]string{first, second} {
		steps, err := json.Marshal(map[string]any{"plugins": dirs, "snippet": snippet, "resume": i > 0, "prompts": prompts})
		require.NoError(t, err)
		file, trace := filepath.Join(p.home, "steps.json"), filepath.Join(p.home, fmt.Sprint("trace-", i))
		require.NoError(t, os.WriteFile(file, steps, 0o644))
		cmd := exec.CommandContext(within(t), editor, append(slices.Clone(r.args), driver)...)
		cmd.Dir = p.app()
		cmd.Env = append(append(os.Environ(), p.env...), "EDITOR_STEPS="+file, "ACP_AGENT_TRACE="+trace)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		text, err := os.ReadFile(trace)
		require.NoError(t, err)
		archive.Files = append(archive.Files, txtar.File{Name: []string{firstFile, secondFile}[i], Data: p.transcribe(t, &ids, text)})
	}
	require.NoError(t, os.WriteFile(r.path(), txtar.Format(archive), 0o644))
}

// firstLine returns the first line that a program prints.
func firstLine(t *testing.T, command string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(within(t), command, args...).Output()
	require.NoError(t, err)
	line, _, _ := strings.Cut(string(out), "\n")
	return line
}

// transcribe turns a trace into a transcript.
func (p project) transcribe(t *testing.T, sessions *sessionIDs, trace []byte) []byte {
	t.Helper()
	release := firstLine(t, "uname", "-r") // agentic.nvim tells the agent
	var b bytes.Buffer
	for line := range strings.Lines(string(trace)) {
		fields := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 5)[1:]
		require.Len(t, fields, 4)
		if fields[2] != "editor" {
			continue
		}
		var m rawrpc.Message
		require.NoError(t, json.Unmarshal([]byte(fields[3]), &m))
		switch {
		case fields[1] == "<-":
			b.WriteString("> " + sessions.fold(strings.NewReplacer(p.home, "$HOME", release, "6.1.0").Replace(fields[3])) + "\n")
		case m.Method == "":
			sessions.note(m)
			fmt.Fprintf(&b, "< %s\n", m.ID)
		case m.ID != nil:
			fmt.Fprintf(&b, "< %s %s\n", m.ID, m.Method)
		}
	}
	return b.Bytes()
}
