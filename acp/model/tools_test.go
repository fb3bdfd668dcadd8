package model

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/mcp"
	"github.com/acp-agent/acp-agent/internal/llm"
	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/interop/modelserver"
)

// names returns the names of the tools that the model was offered last.
func (e *editor) names() (names []string) {
	for _, t := range e.last().Tools {
		names = append(names, t.Name)
	}
	return names
}

func TestReading(t *testing.T) {
	a := dirtest.New(t, "a.txt", "one\ntwo\n", "picture.png", string(onePixel), "sub/x.go",
		"package x\n")
	b := dirtest.New(t, "b.txt", "needle\n")
	for _, c := range []struct {
		order         modelserver.Order
		title, result string
		kind          sdk.ToolKind
		location      string
	}{
		{modelserver.UseWith("list_roots", ``), "List the folders", b, sdk.ToolKindRead, ""},
		{modelserver.UseWith("list_directory", arguments("path", "sub")), "List sub", "x.go",
			sdk.ToolKindRead, filepath.Join(a, "sub")},
		{modelserver.UseWith("directory_tree", `{}`), "Show the tree of the folders", "b.txt",
			sdk.ToolKindRead, ""},
		{modelserver.UseWith("file_info", arguments("path", "a.txt")), "Look up a.txt", "8",
			sdk.ToolKindRead, filepath.Join(a, "a.txt")},
		{modelserver.UseWith("find_files", arguments("glob", "*.go")), "Find *.go", "x.go",
			sdk.ToolKindSearch, ""},
		{modelserver.UseWith("search", arguments("pattern", "need")), `Search for "need"`, "needle",
			sdk.ToolKindSearch, ""},
		{modelserver.UseWith("read_file", arguments("path", "a.txt", "offset", 2)), "Read a.txt",
			"two", sdk.ToolKindRead, filepath.Join(a, "a.txt")},
		{modelserver.UseWith("read_files", arguments("paths",
			[]string{"a.txt", filepath.Join(b, "b.txt")})),
			"Read a.txt, " + filepath.Join(b, "b.txt"), "needle", sdk.ToolKindRead, filepath.Join(a,
				"a.txt")},
		{modelserver.UseWith("read_media", arguments("path", "picture.png")), "Read picture.png",
			"image/png", sdk.ToolKindRead, filepath.Join(a, "picture.png")},
	} {
		t.Run(c.order.Tool, func(t *testing.T) {
			e := open(t, setup{roots: []string{a, b}})
			r := e.prompt("Go.", c.order)
			require.Equal(t, sdk.StopReasonEndTurn, r.stop)
			require.Equal(t, modelserver.Done, r.text())
			calls := r.calls()
			require.Len(t, calls, 1)
			require.Equal(t, c.title, calls[0].Title)
			require.Equal(t, c.kind, calls[0].Tool)
			require.Equal(t, sdk.ToolCallStatusCompleted, calls[0].Status)
			require.Contains(t, calls[0].RawOutput.Text, c.result)
			require.Contains(t, e.results()[0], c.result)
			require.JSONEq(t, fmt.Sprintf(`{"tool":%q,"step":1,"given":"call_1_0","from":%q}`,
				c.order.Tool, e.origin()), string(calls[0].Meta.Agent))
			if c.location != "" {
				require.Equal(t, c.location, calls[0].Locations[0].Path)
			}
			require.Empty(t, r.asked)
		})
	}
}

// document is the beginning of a PDF document.
const document = "%PDF-1.7 text"

// The model is shown what it accepts, and offered a tool for nothing else.
//
// Clause B3.
func TestMedia(t *testing.T) {
	root := dirtest.New(t, "picture.png", string(onePixel), "doc.pdf", document, "a.wav", "RIFF1234WAVE")
	look := func(path string) modelserver.Order {
		return modelserver.UseWith("read_media", arguments("path", path))
	}
	attached := sdk.ResourceBlock(sdk.EmbeddedResourceResource{BlobResourceContents: &sdk.BlobResourceContents{
		Uri: "file:///x.pdf", MimeType: sdk.Ptr(llm.PDF),
		Blob: base64.StdEncoding.EncodeToString([]byte(document))}})
	const image = "image/png;base64,"
	pdf := base64.StdEncoding.EncodeToString([]byte(document))
	for name, c := range map[string]struct {
		model   func(*Model)
		offered string // in the description of the tool
		part    string // a document in the request; see
		// https://platform.openai.com/docs/guides/pdf-files and
		// https://platform.claude.com/docs/en/build-with-claude/pdf-support
	}{
		"images": {func(*Model) {}, "Look at an image: PNG, JPEG, GIF or WebP, up to 3500000 bytes.", ""},
		"chat": {func(m *Model) { m.PDF = new(true) }, "Read a PDF document of up to 8000000 bytes.",
			`"file":{"file_data":"data:application/pdf;base64,` + pdf + `","filename":"document.pdf"}`},
		"responses": {func(m *Model) { m.API, m.PDF = Responses, new(true) }, "Read a PDF document",
			`"file_data":"data:application/pdf;base64,` + pdf + `","filename":"document.pdf","type":"input_file"`},
		"Claude": {func(m *Model) { anthropic(m); m.Name = modelserver.Claude }, "Read a PDF document",
			`{"source":{"data":"` + pdf + `","media_type":"application/pdf","type":"base64"},"type":"document"}`},
		"texts": {func(m *Model) { m.TextOnly = true }, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			e := open(t, setup{roots: []string{root}, model: c.model, servers: []sdk.McpServer{playedServer("fs")}})
			e.answer(allowOnce)
			said := e.send(attached, sdk.TextBlock("Look.")).text()
			body := string(e.last().Body)
			require.Contains(t, body, c.offered)
			require.Equal(t, c.part == "", strings.Contains(said,
				"1 block of type `application/pdf` left out: the model cannot read it."), said)
			require.Equal(t, c.part == "", strings.Contains(body, "A PDF document was left out"))
			require.Contains(t, body, c.part)
			if c.offered == "" {
				require.NotContains(t, body, mediaName)
				pixel := base64.StdEncoding.EncodeToString(onePixel)
				said = e.send(sdk.ImageBlock(pixel, "image/png")).text()
				require.Contains(t, said, "1 block of type `image` left out")
				e.prompt("Look.", modelserver.UseWith("fs__picture", "{}"))
				require.Contains(t, e.results()[0], "cannot be shown files of type image/png")
				return
			}
			e.prompt("Look.", look("picture.png"), look("doc.pdf"), look("a.wav"))
			body, results := string(e.last().Body), e.results()
			if name != "Claude" {
				require.Contains(t, body, image)
			}
			require.Equal(t, c.part == "", strings.Contains(results[1], "files of type application/pdf"))
			require.Contains(t, results[2], "files of type audio/wav")
			require.Equal(t, 2*strings.Count(c.part, pdf), strings.Count(body, pdf))
		})
	}

	big := &modelTurn{endpoint: newEndpoint(Model{ID: "m"})}
	shown := 0
	for range 2 * maxPictured / maxImage {
		note, images := big.picture("image/png",
			append(slices.Clip(onePixel), make([]byte, maxImage-len(onePixel))...))
		shown += len(images)
		require.Equal(t, len(images) == 0, strings.Contains(note, "more images"))
	}
	require.Equal(t, maxPictured/maxImage, shown)
}

func TestReadsAtTheSameTime(t *testing.T) {
	files := dirtest.Tree{}
	var reads []modelserver.Order
	for i := range 20 {
		name := fmt.Sprintf("%d.txt", i)
		files[name] = fmt.Sprintf("content %d", i)
		reads = append(reads, modelserver.UseWith("read_file", arguments("path", name)))
	}
	e := open(t, setup{roots: []string{files.Plant(t)}})
	e.answer(allowOnce)
	// The read after the change sees it.
	reads = append(reads, modelserver.UseWith("write_file", arguments("path", "0.txt", "content",
		"changed")), modelserver.UseWith("read_file", arguments("path", "0.txt")))
	r := e.prompt("Read.", modelserver.Together(reads...))
	calls := r.calls()
	require.Len(t, calls, 22)
	for i, result := range e.results()[:20] {
		require.Contains(t, result, fmt.Sprintf("content %d", i),
			"results are in the order of the calls")
		require.Contains(t, calls[i].RawOutput.Text, fmt.Sprintf("content %d", i))
	}
	require.Contains(t, e.results()[21], "changed")
	announced := 0
	for _, u := range r.updates {
		if u.Meta.Agent != nil {
			announced++
		}
		if u.Status == sdk.ToolCallStatusInProgress {
			break
		}
	}
	require.Equal(t, 22, announced, "all calls are announced before the first runs")
}

func TestInstructionsOfDirectories(t *testing.T) {
	root := dirtest.New(t, "sub/AGENTS.md", "Be brief.", "sub/a.txt", "a", "sub/b.txt", "b")
	e := open(t, setup{roots: []string{root}})
	e.prompt("Read.", modelserver.UseWith("read_file", arguments("path", "sub/a.txt")),
		modelserver.UseWith("read_file", arguments("path", "sub/b.txt")))
	results := e.results()
	require.Contains(t, results[0], filepath.Join(root, "sub", "AGENTS.md"))
	require.NotContains(t, results[1], "AGENTS.md", "each file once")
}

// Clause B2.
func TestHostileCalls(t *testing.T) {
	outside := dirtest.New(t, "secret.txt", "the secret")
	root := dirtest.New(t, "a.txt", "a")
	require.NoError(t, os.Symlink(outside, filepath.Join(root, "link")))
	names := strings.NewReplacer("OUTSIDE", filepath.ToSlash(outside), "PARENT", filepath.Base(outside))
	e := open(t, setup{roots: []string{root}, requests: offered(t)})
	for _, line := range records(t, filepath.Join("testdata", "hostile.txt"))[0] {
		tool, arguments, _ := strings.Cut(names.Replace(line), " ")
		order := modelserver.UseWith(tool, arguments)
		r := e.prompt("Go.", order) // nobody is asked
		require.Equal(t, modelserver.Done, r.text(), order)
		require.Len(t, r.calls(), 1)
		require.Equal(t, sdk.ToolCallStatusFailed, r.calls()[0].Status, order)
		results := e.results()
		require.NotContains(t, strings.ReplaceAll(results[len(results)-1], "secret.txt", ""),
			"the secret")
	}
	require.Equal(t, dirtest.Tree{"secret.txt": "the secret"}, dirtest.Planted(t, outside))
	require.Equal(t, dirtest.Tree{"a.txt": "a"}, dirtest.Planted(t, root))
}

// Clause B2.
func TestModesBoundTools(t *testing.T) {
	e := open(t, setup{requests: offered(t), servers: []sdk.McpServer{playedServer("played")}})
	changing := []string{"write_file", "edit_file", "create_directory", "delete_file", "move_file",
		"run_command", "played__long"}
	for _, m := range []mode{ask, acceptEdits, readOnly, planning} {
		e.call("session/set_mode", map[string]any{"modeId": m})
		e.prompt("Hello.")
		names := e.names()
		require.Contains(t, names, "read_file")
		require.Contains(t, names, "update_plan")
		require.Contains(t, names, "played__claim")
		for _, name := range changing {
			if m.mayChange() {
				require.Contains(t, names, name, m)
			} else {
				require.NotContains(t, names, name, m)
			}
		}
	}
}

func TestServerTools(t *testing.T) {
	e := open(t, setup{servers: []sdk.McpServer{playedServer("played")}})
	e.answer(allowOnce)
	r := e.prompt("Claim.", modelserver.UseWith("played__claim", `{"n":1}`))
	require.Equal(t, modelserver.Done, r.text())
	require.Len(t, r.asked, 1, "the server's claim that it only reads is not trusted")
	calls := r.calls()
	require.Len(t, calls, 1)
	require.Equal(t, sdk.ToolCallStatusCompleted, calls[0].Status)
	require.Equal(t, r.asked[0].Call.ID, calls[0].ID)
	require.JSONEq(t, fmt.Sprintf(`{"tool":"played__claim","step":1,"given":"call_1_0","from":%q}`,
		e.origin()), string(calls[0].Meta.Agent))
	require.Equal(t, "claimed\n", calls[0].RawOutput.Text)
	require.Equal(t, []string{"claimed\n"}, e.results())

	e.prompt("Look.", modelserver.UseWith("played__picture", `{}`))
	require.Contains(t, string(e.last().Body), "data:image/png;base64,")

	e.prompt("Look.", modelserver.UseWith("played__drawing", `{}`))
	require.NotContains(t, string(e.last().Body), "image/svg")
	require.Contains(t, string(e.last().Body), "cannot be shown the image or document: it is not a PNG")

	e.prompt("Read all.", modelserver.UseWith("played__long", `{}`))
	results := e.results()
	require.Contains(t, results[len(results)-1], "truncated")
	require.Less(t, len(results[len(results)-1]), 2*maxResult)

	e.answer(rejectOnce)
	r = e.prompt("Claim.", modelserver.UseWith("played__claim", `{"n":2}`))
	require.Equal(t, sdk.ToolCallStatusFailed, r.calls()[0].Status)
	results = e.results()
	require.Contains(t, results[len(results)-1], "did not allow")

	e.answer(cancelQuestion)
	r = e.prompt("Claim.", modelserver.UseWith("played__claim", `{"n":3}`))
	require.Equal(t, sdk.StopReasonCancelled, r.stop)
	e.answer(allowOnce)
	e.restart()
	r = e.prompt("Claim.", modelserver.UseWith("played__claim", `{"n":4}`))
	require.Equal(t, modelserver.Done, r.text(), "the conversation is valid")
}

func TestLateServers(t *testing.T) {
	start := filepath.Join(t.TempDir(), "start")
	e := open(t, setup{serverPatience: 100 * time.Millisecond,
		servers: []sdk.McpServer{serverIn("late", "late", "LATE="+start), playedServer("played")}})
	said := ""
	require.Eventually(t, func() bool { // this one may be late too
		said += e.prompt("Hello.").text()
		return slices.Contains(e.names(), "played__claim")
	}, patience, time.Millisecond)
	require.NotContains(t, e.names(), "late__claim")
	const note = "The MCP server `late` is still starting"
	require.Equal(t, 1, strings.Count(said, note), said)
	require.Contains(t, said, "The model begins without its tools, and gets them when it is ready.")
	require.NoError(t, os.WriteFile(start, nil, 0o600))
	require.Eventually(t, func() bool {
		e.prompt("Hello.")
		return slices.Contains(e.names(), "late__claim")
	}, patience, time.Millisecond)
	require.Contains(t, e.names(), "played__claim")
}

func TestFailedServers(t *testing.T) {
	missing := sdk.McpServerStdio{Name: "missing", Command: filepath.Join(t.TempDir(), "none"),
		Args: []string{}, Env: []sdk.EnvVariable{}}
	e := open(t, setup{servers: []sdk.McpServer{{Stdio: &missing}, playedServer("played")}})
	r := e.prompt("Hello.")
	require.Contains(t, r.text(), "MCP server missing: cannot start")
	require.Contains(t, r.text(), ". The model continues without its tools.\n\n"+modelserver.Done)
	require.Contains(t, e.names(), "played__claim")
	require.Equal(t, modelserver.Done, e.prompt("Hello.").text(), "said once")
	require.NotContains(t, string(e.last().Body), "cannot start")
}

// A server can fail when it is no longer waited for.
func TestLateServerThatFails(t *testing.T) {
	fail := filepath.Join(t.TempDir(), "fail")
	e := open(t, setup{serverPatience: time.Millisecond,
		servers: []sdk.McpServer{serverIn("broken", "late", "LATE="+fail)}})
	require.Regexp(t, "^The MCP server `late` is still starting.*\n\n"+modelserver.Done+"$", e.prompt("Hello.").text())
	require.NoError(t, os.WriteFile(fail, nil, 0o600))
	told := ""
	require.Eventually(t, func() bool {
		told = e.prompt("Hello.").text()
		return told != modelserver.Done
	}, patience, time.Millisecond)
	require.Regexp(t,
		`^MCP server late: .*\. The model continues without its tools\.\n\n`+modelserver.Done+"$",
		told)
}

func TestNamesOfServerTools(t *testing.T) {
	b := &toolbox{byName: map[string]tool{}}
	long := strings.Repeat("x", 64)
	for _, name := range []string{"a.b__c", "a__b.c", long + "." + long,
		long + "." + strings.Repeat("x", 63) + "y"} {
		b.addRemote(mcp.Tool{Name: name, Remote: name, Server: "s"})
	}
	require.Len(t, b.byName, 4)
	for i, tool := range b.offered {
		require.Regexp(t, `^[A-Za-z0-9_-]{1,64}$`, tool.Name, i)
	}
	b.addRemote(mcp.Tool{Name: "21st.build", Server: "s"})
	require.Contains(t, b.byName, "mcp_21st__build")
	require.Equal(t, "a__b__c", b.offered[0].Name)
	require.Contains(t, b.byName["a__b__c"].callTitle, "a.b__c")

	b = &toolbox{byName: map[string]tool{}}
	made := fmt.Sprintf("b__c_%x", sha256.Sum256([]byte("a__b.c")))[:64-len("a__")]
	for _, name := range []string{"a.b__c", "a." + made, "a__b.c"} {
		b.addRemote(mcp.Tool{Name: name, Server: "s", Description: "D\u202e\U000e0041"})
	}
	require.Len(t, b.offered, 2, "servers reject two tools of one name")
	require.Equal(t, "Tool of the MCP server \"s\". D\ufffd\ufffd", b.offered[0].Description)
}

func TestUnknownTools(t *testing.T) {
	e := open(t, setup{})
	r := e.prompt("Go.", modelserver.Invent("dance now!", `{}`),
		modelserver.Invent("x"+strings.Repeat("é", 64), `{}`))
	require.Equal(t, modelserver.Done, r.text())
	calls := r.calls()
	require.Len(t, calls, 2)
	require.Equal(t, "Unknown tool dance_now_", calls[0].Title)
	require.Contains(t, calls[0].RawOutput.Text,
		`there is no tool "dance now!"; the tools are list_roots`)
	require.Contains(t, string(e.last().Body), `"name":"dance_now_"`, "servers reject other names")

	e.call("session/set_mode", map[string]any{"modeId": readOnly})
	r = e.prompt("Go.", modelserver.Invent("write_file", arguments("path", "a.txt", "content",
		"a")))
	require.Contains(t, r.calls()[0].RawOutput.Text, `there is no tool "write_file"`)
}

// Tools and arguments have the names that weak models give them, and a small context has ten tools.
//
// Clause B6.
func TestWeakModels(t *testing.T) {
	dir := dirtest.New(t, "a.txt", "one\n")
	e := open(t, setup{roots: []string{dir}, model: small(16_384)})
	e.answer(allowOnce)
	r := e.prompt("Do it",
		modelserver.UseWith("read_file", `{"file_path":"a.txt"}`),
		modelserver.UseWith("edit_file", `{"file_path":"a.txt","old_string":"one","new_string":"two"}`),
		modelserver.UseWith("run_command", `{"cmd":"echo three"}`),
		modelserver.UseWith("update_plan", `{"todos":[{"content":"x","status":"done"}]}`))
	require.Equal(t, modelserver.Done, r.text())
	require.Equal(t, "two\n", read(t, filepath.Join(dir, "a.txt")))
	for _, call := range r.calls() {
		require.Equal(t, sdk.ToolCallStatusCompleted, call.Status, call.Title)
	}
	require.Equal(t, "Read a.txt", r.calls()[0].Title)
	require.JSONEq(t, `{"path":"a.txt"}`, string(r.calls()[0].RawInput))
	require.Len(t, e.last().Tools, 10)

	b := &toolbox{byName: map[string]tool{}}
	b.byName["read_file"] = tool{}
	for _, name := range []string{"read_file", "Read_File", "functions.read_file", "read-file"} {
		_, known := b.find(name)
		require.True(t, known, name)
	}
	_, known := b.find("other.read_file")
	require.False(t, known)
}
