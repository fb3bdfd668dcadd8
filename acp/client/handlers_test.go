package client_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
)

func TestUpdatesInOrder(t *testing.T) {
	var got []client.Update // no lock: Prompt returns after the last one
	c, a := initialized(t, full, client.Options{Updates: func(_ context.Context, u client.Update) {
		got = append(got, u)
	}})
	const updates = 500
	a.answerWith("session/prompt", func(string) (string, error) {
		for i := range updates {
			a.notify("session/update",
				fmt.Sprintf(`{"sessionId":"s","update":{"sessionUpdate":"_odd","n":%d,"x":1.0,`+
					`"x":1e5}}`, i))
		}
		return `{"stopReason":"end_turn","_meta":{"a":1.0}}`, nil
	})
	end, err := c.Prompt(t.Context(), "s", sdk.TextBlock("hello"))
	require.NoError(t, err)
	require.Equal(t, client.TurnEnd{StopReason: sdk.StopReasonEndTurn,
		Result: json.RawMessage(`{"stopReason":"end_turn","_meta":{"a":1.0}}`)}, end)
	require.Equal(t, []string{`session/prompt {"sessionId":"s","prompt":[{"text":"hello",` +
		`"type":"text"}]}`}, a.take())
	require.Len(t, got, updates)
	for i, u := range got {
		update := fmt.Sprintf(`{"sessionUpdate":"_odd","n":%d,"x":1.0,"x":1e5}`, i)
		require.Equal(t, client.Update{
			SessionID: "s", Kind: "_odd",
			Update: json.RawMessage(update),
			Params: json.RawMessage(`{"sessionId":"s","update":` + update + `}`),
		}, u)
	}
}

func TestMalformedUpdate(t *testing.T) {
	got := make(chan client.Update, 1)
	_, a := initialized(t, full, client.Options{Updates: func(_ context.Context, u client.Update) {
		got <- u
	}})
	a.notify("session/update", `{"update":[1]}`)
	require.Equal(t, client.Update{Update: json.RawMessage(`[1]`),
		Params: json.RawMessage(`{"update":[1]}`)}, <-got)
}

func TestNotifications(t *testing.T) {
	got := make(chan string, 1)
	_, a := initialized(t, full,
		client.Options{Notifications: func(_ context.Context, method string,
			params json.RawMessage) {
			got <- method + " " + string(params)
		}})
	a.notify("session/update", `{}`) // dropped, because Updates is not set
	a.notify("_x/note", `{"a":1.0}`)
	require.Equal(t, `_x/note {"a":1.0}`, <-got)
}

func TestRequestWithoutHandler(t *testing.T) {
	_, a := initialized(t, full, client.Options{})
	for _, method := range []string{"session/request_permission", "fs/read_text_file",
		"fs/write_text_file", "terminal/create", "_x/any"} {
		_, err := a.ask(method, `{"sessionId":"s"}`)
		var refused *jsonrpc.Error
		require.ErrorAs(t, err, &refused, method)
		require.Equal(t, jsonrpc.CodeMethodNotFound, refused.Code, method)
	}
}

func TestHandlers(t *testing.T) {
	_, a := initialized(t, full, client.Options{
		ReadTextFile: func(_ context.Context, r sdk.ReadTextFileRequest) (sdk.ReadTextFileResponse,
			error) {
			return sdk.ReadTextFileResponse{Content: "content of " + r.Path}, nil
		},
		WriteTextFile: func(context.Context, sdk.WriteTextFileRequest) (sdk.WriteTextFileResponse,
			error) {
			return sdk.WriteTextFileResponse{}, jsonrpc.Errorf(-32002, "no")
		},
		Requests: map[string]func(context.Context, json.RawMessage) (json.RawMessage, error){
			"_x/echo": func(_ context.Context, params json.RawMessage) (json.RawMessage, error) {
				return params, nil
			},
		},
	})
	result, err := a.ask("fs/read_text_file", `{"sessionId":"s","path":"/a/f"}`)
	require.NoError(t, err)
	require.JSONEq(t, `{"content":"content of /a/f"}`, result)
	_, err = a.ask("fs/write_text_file", `{"sessionId":"s","path":"/a/f","content":""}`)
	require.EqualError(t, err, "no (-32002)")
	result, err = a.ask("_x/echo", `{"n":1.0}`)
	require.NoError(t, err)
	require.Equal(t, `{"n":1.0}`, result)
	_, err = a.ask("fs/read_text_file", `[]`)
	var refused *jsonrpc.Error
	require.ErrorAs(t, err, &refused)
	require.Equal(t, jsonrpc.CodeInvalidParams, refused.Code)
}

func TestCancel(t *testing.T) {
	asked := make(chan struct{})
	c, a := initialized(t, full, client.Options{
		Permission: func(ctx context.Context, _ sdk.RequestPermissionRequest) (
			sdk.RequestPermissionResponse, error) {
			asked <- struct{}{}
			<-ctx.Done()
			return sdk.RequestPermissionResponse{}, ctx.Err()
		},
	})
	const cancelled = `{"outcome":{"outcome":"cancelled"}}`
	answers := make(chan string, 2)
	a.answerWith("session/prompt", func(string) (string, error) {
		for range 2 { // one that waits when the turn is cancelled, one that comes after
			result, err := a.ask("session/request_permission",
				`{"sessionId":"s","options":[],"toolCall":{"toolCallId":"t"}}`)
			if err != nil {
				return "", err
			}
			answers <- result
		}
		return `{"stopReason":"cancelled"}`, nil
	})
	cancels := make(chan error, 1)
	cancelWhenAsked := func() {
		<-asked
		cancels <- c.Cancel(t.Context(), "s")
	}
	go cancelWhenAsked()
	end, err := c.Prompt(t.Context(), "s")
	require.NoError(t, err)
	require.Equal(t, sdk.StopReasonCancelled, end.StopReason)
	require.NoError(t, <-cancels)
	require.JSONEq(t, cancelled, <-answers)
	require.JSONEq(t, cancelled, <-answers)

	// The next turn's requests are asked again.
	a.answerWith("session/prompt", func(string) (string, error) {
		go cancelWhenAsked()
		result, err := a.ask("session/request_permission",
			`{"sessionId":"s","options":[],"toolCall":{"toolCallId":"t"}}`)
		answers <- result
		return `{"stopReason":"end_turn"}`, err
	})
	_, err = c.Prompt(t.Context(), "s")
	require.NoError(t, err)
	require.NoError(t, <-cancels)
	require.JSONEq(t, cancelled, <-answers)
	require.NoError(t, c.Cancel(t.Context(), "s"), "without a turn it is only sent")
}
