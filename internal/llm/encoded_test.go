package llm

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

// whole returns a body in one piece.
func whole(b requestBody) []byte { return bytes.Join(b, nil) }

// taught returns what a rejection says about a server.
func taught(rejection string) variant {
	var l learned
	l.learn([]byte(rejection), Request{}, 0)
	return l.now()
}

// A body is read like its pieces.
func TestRequestBody(t *testing.T) {
	b := requestBody{[]byte("one"), nil, []byte(","), []byte("three"), {}}
	require.NoError(t, iotest.TestReader(&bodyReader{left: b}, whole(b)))
	require.EqualValues(t, len(whole(b)), b.size())
}

// What is kept of earlier requests does not change the next one, whatever has changed.
func TestEncodedMessages(t *testing.T) {
	for name, test := range map[string]struct {
		format format
		model  Model
	}{
		"chat":      {openAIFormat{}, Model{Name: "m"}},
		"gateway":   {openAIFormat{}, Model{Name: "anthropic/claude-sonnet-4.5"}},
		"responses": {responsesFormat{}, Model{Name: "m"}},
		"Anthropic": {anthropicFormat{}, Model{Name: "claude-sonnet-5"}},
	} {
		t.Run(name, func(t *testing.T) {
			var kept Encoded
			var v variant
			var messages []Message
			check := func() {
				t.Helper()
				request := Request{System: "Be kind.", Messages: messages}
				want := string(whole(test.format.encode(test.model, request, v)))
				request.Encoded = &kept
				require.Equal(t, want, string(whole(test.format.encode(test.model, request, v))))
			}
			check()
			for n := range 20 {
				id := fmt.Sprint(n)
				messages = append(messages, UserText("Do "+id), Message{Assistant, []Part{
					Thinking{Text: "Hm.", Signature: "s"}, Text("I read."), ToolCall{ID: id, Name: "read", Arguments: "{}"}}},
					Message{User, []Part{ToolResult{ID: id, Content: []Part{Text("One"), Media{"image/png", []byte(id)}}}}},
					Message{Assistant, []Part{Text("Done."), Thinking{Text: "Good."}}})
				check()
				switch n {
				case 5: // results are left out
					for i := range messages {
						if r, ok := messages[i].Parts[0].(ToolResult); ok {
							r.Content = []Part{Text("left out")}
							messages[i].Parts = []Part{r}
						}
					}
				case 10: // the server wants what was not sent before
					v = taught("reasoning_content is missing")
				case 15: // a summary
					messages = append([]Message{UserText("A summary."), UserText(" ")}, messages[len(messages)-3:]...)
				case 17:
					messages[1].Parts = append(slices.Clone(messages[1].Parts), Text(strings.Repeat("x", maxEncoded)))
				}
				check()
			}
		})
	}
}
