package proxy

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// A character that an agent cuts in two chunks arrives whole.
//
// Clause P6.
func TestPairsAreJoined(t *testing.T) {
	sub := new(subagent)
	for name, c := range map[string]struct{ in, want []string }{
		"cut":        {[]string{`say a\ud83d`, `say \ude00b`}, []string{`say a`, `say \ud83d\ude00b`}},
		"upper case": {[]string{`say \uD83D`, `say \uDE00`}, []string{`say `, `say \uD83D\uDE00`}},
		"twice":      {[]string{`say \ud83d`, `say \ude00\ud83d`, `say \ude01`}, []string{`say `, `say \ud83d\ude00`, `say \ud83d\ude01`}},
		"something in between": {[]string{`say a\ud83d`, `think b`, `sub \ude00`, `plan`, `say \ude00`},
			[]string{`say a`, `think b`, `sub \ude00`, `plan`, `say \ud83d\ude00`}},
		"no other half": {[]string{`say a\ud83d`, `say b`, `say \ude00`}, []string{`say a`, `say b`, `say \ude00`}},
		"whole":         {[]string{`say \ud83d\ude00`, `say b`}, nil},
		"text":          {[]string{`say \\ud83d`, `say \\\\ud83d`, `say \\\ud83d`}, []string{`say \\ud83d`, `say \\\\ud83d`, `say \\`}},
		"quotation":     {[]string{`say \"a\"\ud83d`, `say \ude00\"`}, []string{`say \"a\"`, `say \ud83d\ude00\"`}},
		"other escapes": {[]string{`say \ud7ff`, `say \u00e4`, `say \ue000`}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if c.want == nil {
				c.want = c.in
			}
			var p pairs
			for i, in := range c.in {
				who, text, _ := strings.Cut(in, " ")
				from, kind := (*subagent)(nil), sessionstore.AgentMessageChunk
				switch who {
				case "sub":
					from = sub
				case "think":
					kind = sessionstore.AgentThoughtChunk
				case "plan":
					kind = sessionstore.Kind("plan")
				}
				update := func(text string) string {
					return fmt.Sprintf(`{"x":1.0,"update":{"sessionUpdate":%q,"content":{"type":"text","text":"%s"},"y":"\ud800"}}`,
						kind, text)
				}
				_, want, _ := strings.Cut(c.want[i], " ")
				require.Equal(t, update(want), string(p.join(from, kind, backend.Raw(update(text)))))
			}
		})
	}
	odd := backend.Raw(`{"update":{"sessionUpdate":"agent_message_chunk","content":{"text":7,"x":"\ud83d"}}}`)
	require.Equal(t, string(odd), string(new(pairs).join(nil, sessionstore.AgentMessageChunk, odd)))
}
