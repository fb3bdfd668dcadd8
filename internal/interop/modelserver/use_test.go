package modelserver_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/interop/modelserver"
)

// Agents put a server's name before that of its tool; Codex has a namespace for it.
func TestAToolOfAServerIsUsedByItsName(t *testing.T) {
	chat, responses := formats["chat"], formats["responses"]
	order := []modelserver.Order{modelserver.Use("list_files", "/a").By("fs")}
	for _, name := range []string{"fs_list_files", "mcp__fs__list_files", "fs-list_files"} {
		answer := post(t, start(t), chat.path, chat.ask(prompted(order), false, chat.tool("list_files", properties("path")), chat.tool(name, properties("path"))))
		require.Contains(t, answer, `"name":"`+name+`"`)
		require.Contains(t, answer, `{\"path\":\"/a\"}`)
	}
	namespace := func(name string, tools ...any) object {
		return object{"type": "namespace", "name": name, "tools": tools}
	}
	for _, streamed := range []bool{false, true} {
		answer := post(t, start(t), responses.path, responses.ask(prompted(order), streamed,
			namespace("mcp__other", responses.tool("list_files", properties())), namespace("mcp__fs", responses.tool("list_files", properties()))))
		require.Contains(t, answer, `"name":"list_files","namespace":"mcp__fs"`)
	}
	own := prompted([]modelserver.Order{modelserver.Read("/a")})
	answer := post(t, start(t), responses.path, responses.ask(own, false, namespace("mcp__fs", responses.tool("read", properties("path")))))
	require.Contains(t, answer, `no tool on offer is for \"read\": mcp__fsread`, "a server's tool is not the agent's own")
	answer = post(t, start(t), chat.path, chat.ask(prompted(order), false, chat.tool("exec_command", properties("cmd"))))
	require.Contains(t, answer, `no tool on offer is for \"fs use list_files\"`, "and no shell stands for it")
	bare := object{"type": "function", "function": object{"name": "fs_list_files"}}
	answer = post(t, start(t), chat.path, chat.ask(prompted(order), false, bare))
	require.Contains(t, answer, `"arguments":"{}"`, "a tool that takes none may have no schema")
}
