package proxy_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/backend"
)

// Clause A36.
func TestSubagentsAreNotDeclared(t *testing.T) {
	const air = `{"fs":{ "readTextFile" : true},%s"_meta":{"jetbrains":{"air":{"version":1,` +
		`"capabilities":[%s]},"x":1.0}}}`
	for name, test := range map[string]struct{ given, want string }{
		"standard": {`{"subagents":{},"terminal":true}`, `{"terminal":true}`},
		"twice":    {`{"subagents":null,"n":1e0,"subagents":{}}`, `{"n":1e0}`},
		"JetBrains": {
			fmt.Sprintf(air, `"subagents":{"_meta":{}},`,
				`"diffPatch", "nativeSubagentSessions" ,"goal"`),
			fmt.Sprintf(air, ``, `"diffPatch","goal"`),
		},
		"neither": {
			fmt.Sprintf(air, ``, `"diffPatch" , "asyncTasks"`),
			fmt.Sprintf(air, ``, `"diffPatch" , "asyncTasks"`),
		},
		"not an object": {`7`, `7`},
		"list":          {`{"_meta":{"jetbrains":{"air":[]}}}`, `{"_meta":{"jetbrains":{"air":[]}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			b := start(t, plain)
			_, err := b.backend.Initialize(t.Context(), backend.Raw(
				`{"protocolVersion":1,"clientCapabilities":`+test.given+`}`), b.client)
			require.NoError(t, err)
			require.Equal(t, []string{`{"jsonrpc":"2.0","id":1,"method":"initialize","params":` +
				`{"protocolVersion":1,"clientCapabilities":` + test.want + `}}`},
				b.received("initialize"))
		})
	}
}
