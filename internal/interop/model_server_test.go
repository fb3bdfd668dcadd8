package interop

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/llm"
	"github.com/acp-agent/acp-agent/internal/testutil/npmtest"
)

// startMock starts a model server by others, whose answers are in testdata/aimock.json, and returns its address.
func startMock(t *testing.T) string {
	t.Helper()
	script := npmtest.File(t, "testdata/node-models", "@copilotkit/aimock/dist/cli.js")
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, npmtest.Node(t), script, "--port", "0", "--fixtures", "testdata/aimock.json", "--strict")
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait()
	})
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		if _, url, found := strings.Cut(lines.Text(), "listening on "); found {
			return url
		}
	}
	require.Fail(t, "the server did not start")
	return ""
}

// Our model clients understand a server by people who compare it with the real ones every day.
func TestModelClientsAndAnotherServer(t *testing.T) {
	url := startMock(t)
	for _, m := range []llm.Model{
		{API: llm.OpenAI, BaseURL: url + "/v1", Name: "gpt-5"},
		{API: llm.Anthropic, BaseURL: url, Name: "claude-opus-4-5"},
	} {
		t.Run(string(m.API), func(t *testing.T) {
			client := llm.New(m)
			ask := func(messages ...llm.Message) (heard, error) {
				tool := llm.Tool{Name: "read_file", Description: "Reads a file.", Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}}}`)}
				return hear(within(t), client, llm.Request{System: "Be good.", Messages: messages, Tools: []llm.Tool{tool}})
			}
			got, err := ask(llm.UserText("Please explain."))
			require.NoError(t, err)
			require.Equal(t, "Hmm. That is not easy to say.", got.thought)
			require.Equal(t, "It is a banana, naïve as it may be: 香蕉.", got.said)
			require.Equal(t, llm.Stopped, got.finish.Reason)

			please := llm.UserText("Please look.")
			got, err = ask(please)
			require.NoError(t, err)
			require.Equal(t, "I look.", got.said)
			require.Equal(t, llm.CallsTools, got.finish.Reason)
			require.Len(t, got.calls, 2)
			answer, results := llm.Message{Role: llm.Assistant, Parts: []llm.Part{llm.Text(got.said)}}, llm.Message{Role: llm.User}
			for i, c := range got.calls {
				require.Equal(t, "read_file", c.Name)
				require.JSONEq(t, `{"path":"`+[]string{"a", "b"}[i]+`.txt"}`, c.Arguments)
				require.NotEmpty(t, c.ID)
				answer.Parts = append(answer.Parts, c)
				results.Parts = append(results.Parts, llm.ToolResult{ID: c.ID, Content: []llm.Part{llm.Text("a fruit")}})
			}
			got, err = ask(please, answer, results)
			require.NoError(t, err)
			require.Equal(t, "Seen.", got.said)

			got, err = ask(llm.UserText("Please reach the limit."))
			require.NoError(t, err)
			require.Equal(t, llm.Length, got.finish.Reason)

			_, err = ask(llm.UserText("Please refuse."))
			var failed *llm.Error
			require.ErrorAs(t, err, &failed)
			require.Equal(t, 401, failed.Status)
			require.Contains(t, failed.Message, "No such key.")
		})
	}
}

// heard is an answer of a model.
type heard struct {
	thought, said string
	calls         []llm.ToolCall
	finish        llm.Finish
}

// hear asks a model and collects its answer.
func hear(ctx context.Context, client *llm.Client, r llm.Request) (heard, error) {
	var h heard
	for event, err := range client.Stream(ctx, r) {
		if err != nil {
			return h, err
		}
		switch e := event.(type) {
		case llm.TextDelta:
			h.said += string(e)
		case llm.ThinkingDelta:
			h.thought += string(e)
		case llm.ToolCall:
			h.calls = append(h.calls, e)
		case llm.Retry:
			return h, errors.Join(errors.New("a second try"), e.Err)
		case llm.Finish:
			h.finish = e
		}
	}
	return h, nil
}
