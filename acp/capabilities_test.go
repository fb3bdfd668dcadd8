package acp_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
)

// Each capability of a client opens its own methods and no other's.
func TestA26_Capabilities(t *testing.T) {
	a := folder(t)
	file := encode(map[string]string{"path": filepath.Join(a, "file")})
	params := map[string]string{
		"fs/read_text_file": file, "fs/write_text_file": file,
		"terminal/create": `{"command":"x"}`, "terminal/output": `{"terminalId":"t"}`, "terminal/wait_for_exit": `{"terminalId":"t"}`,
		"terminal/kill": `{"terminalId":"t"}`, "terminal/release": `{"terminalId":"t"}`,
		"elicitation/create": `{"message":"x"}`,
	}
	for capabilities, offered := range map[string]string{
		`{}`:                            "",
		`{"fs":{"readTextFile":true}}`:  "fs/read_text_file",
		`{"fs":{"writeTextFile":true}}`: "fs/write_text_file",
		`{"fs":{"readTextFile":false,"writeTextFile":null},"terminal":false,"elicitation":null}`: "",
		`{"fs":true,"terminal":{},"elicitation":true}`:                                           "",
		`{"fs":{"readTextFile":"true"},"terminal":"true","elicitation":[]}`:                      "",
		`{"terminal":true}`:  "terminal/",
		`{"elicitation":{}}`: "elicitation/",
		`{"_meta":{"fs":{"readTextFile":true},"terminal":true,"elicitation":{}}}`: "",
	} {
		t.Run(capabilities, func(t *testing.T) {
			c := connect(t, acp.Options{})
			c.answers = func(message) string { return `{}` }
			c.call("initialize", `{"protocolVersion":1,"clientCapabilities":`+capabilities+`}`)
			id := c.open(a)
			for method, params := range params {
				answer := c.texts(id, "call "+method+" "+params)[0]
				reached := slices.ContainsFunc(c.messages(), func(m message) bool { return m.Method == method })
				want := offered != "" && strings.HasPrefix(method, offered)
				require.Equal(t, want, reached, method)
				require.Equal(t, !want, strings.Contains(answer, "does not offer "+method), answer)
			}
		})
	}
}
