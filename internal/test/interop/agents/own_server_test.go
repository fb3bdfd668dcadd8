package agents

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/internal/test/interop/modelserver"
	"github.com/acp-agent/acp-agent/internal/test/interop/program"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// dot is a PNG image of one pixel.
const dot = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

// The models of real agents call every tool of acp-agent mcp, and see its results as the server
// wrote them.
//
// Clause M8.
func TestTheModelsOfRealAgentsUseEveryTool(t *testing.T) {
	t.Parallel()
	for _, s := range []subject{opencode, claude, gemini} {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			rarely(t, s)
			s := onStage(t, s)
			dir := folder(t, "banana\n")
			image, err := base64.StdEncoding.DecodeString(dot)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(dir, "dot.png"), image, 0o644))
			server := sdk.McpServerStdio{Name: "files", Command: program.Path(), Args: []string{"mcp", "--dir", dir}, Env: []sdk.EnvVariable{}}
			e := s.behind(t, noFiles)
			made, err := e.NewSession(within(t), client.Setup{Roots: s.roots(t), MCPServers: []sdk.McpServer{{Stdio: &server}}})
			require.NoError(t, err)

			use := func(tool, arguments string) modelserver.Order {
				if s.subject.name == gemini.name { // it adds this argument to the tools of MCP servers, and does not remove it from calls
					arguments = string(strictjson.Set(json.RawMessage(arguments), "wait_for_previous", json.RawMessage("true")))
				}
				return modelserver.UseWith(tool, arguments).By("files")
			}
			calls := []struct {
				order modelserver.Order
				want  string // part of the result
			}{
				{use("list_roots", `{}`), dir},
				{use("list_directory", `{}`), "fruit.txt (7 bytes)"},
				{use("directory_tree", `{"exclude":["*.png"]}`), "  fruit.txt\n1 file"},
				{use("file_info", `{"path":"fruit.txt"}`), "type: file\n"},
				{use("read_file", `{"path":"fruit.txt","tail":1}`), "\nbanana\n"},
				{use("read_files", `{"paths":["fruit.txt","none"]}`), "none could not be read"},
				{use("read_media", `{"path":"dot.png"}`), "image/png"},
				{use("find_files", `{"glob":"*.txt"}`), "found 1 file"},
				{use("search", `{"pattern":"ban+a"}`), "1:banana\n"},
				{use("write_file", `{"path":"new.txt","content":"one\n\ttwo\n"}`), "was created"},
				{use("edit_file", `{"path":"new.txt","edits":[{"old_text":"one","new_text":"1"},{"old_text":"  two\n","new_text":"  2\n"}]}`), "indented like the file"},
				{use("create_directory", `{"path":"sub"}`), "was created"},
				{use("move_file", `{"path":"new.txt","to":"sub/new.txt"}`), "was moved to"},
				{use("delete_file", `{"path":"fruit.txt"}`), "was deleted"},
			}
			var orders []modelserver.Order
			for _, c := range calls {
				orders = append(orders, c.order)
			}
			turn := s.prompt(e, made.ID, "Please tidy up.", append(orders, modelserver.Say("It is tidy."))...)
			results := turn[len(turn)-1].Of(modelserver.Result)
			require.Len(t, results, len(calls))
			for i, c := range calls {
				require.Contains(t, results[i], c.want, c.order.Tool)
			}
			moved, err := os.ReadFile(filepath.Join(dir, "sub/new.txt"))
			require.NoError(t, err)
			require.Equal(t, "1\n\t2\n", string(moved))
			require.NoFileExists(t, fruit(dir))
			if s.subject.name != gemini.name { // it only shows that there is one
				require.Contains(t, e.heard(made.ID), dot, "the user sees the image")
			}
			if s.subject.name != opencode.name { // it knows that its model here takes no images
				require.Contains(t, string(turn[len(turn)-1].Body), dot, "the model sees the image")
			}
		})
	}
}
