package model

import (
	"encoding/json"
	"strings"
	"testing"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"
)

// A call or a thought that the server has left in the text is explained, once.
//
// Clause B7.
func TestUnreadAnswers(t *testing.T) {
	const parser = "The model wrote a tool call as text, so nothing was run"
	for said, hint := range map[string]string{
		"<tool_call>\n{\"name\":\"read_file\",\"arguments\":{\"path\":\"a\"}}\n</tool_call>": parser,
		"I read. <function=read_file><parameter=path>a</parameter></function>":               parser,
		"[TOOL_CALLS][{\"name\":\"search\"}]":                                                parser,
		`{"name":"read_file","parameters":{"path":"a"}}`:                                     parser,
		"```json\n{\"name\":\"Read_File\",\"arguments\":{}}\n```":                            parser,
		"Hm, I see.\n</think>\n\nHello":                                                      "--reasoning-parser",
		"<thinking>Hm</thinking>Hello":                                                       "--reasoning-parser",
		"<tool_call> is a tag.":                                                              "",
		`{"name":"Ana","arguments":[]}`:                                                      "",
		"Hello":                                                                              "",
	} {
		t.Run(said, func(t *testing.T) {
			t.Parallel()
			e := open(t, setup{})
			order, err := json.Marshal(said)
			require.NoError(t, err)
			words := "Say.\nmodel: {\"do\":\"say\",\"text\":" + string(order) + "}"
			first := e.send(sdk.TextBlock(words)).text()
			require.True(t, strings.HasPrefix(first, said), first)
			if hint == "" {
				require.Equal(t, said, first)
				return
			}
			require.Contains(t, first, hint)
			require.Equal(t, said, e.send(sdk.TextBlock(words)).text(), "once")
		})
	}
}
