package backend_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/backend"
)

// answering is a client that answers every request in the same way.
type answering struct {
	backend.Client
	result backend.Raw
	err    error
	asked  []string
}

func (a *answering) Call(_ context.Context, method string, params backend.Raw) backend.Work {
	a.asked = append(a.asked, method+" "+string(params))
	return func() (backend.Raw, error) { return a.result, a.err }
}

// titled returns a tool call with a title.
func titled(title string) backend.ToolCall {
	return backend.ToolCall{ToolCallUpdate: sdk.ToolCallUpdate{Title: &title}}
}

// mayDelete offers both ways to allow what it asks for.
func mayDelete() backend.Question {
	return backend.Question{Call: titled("Delete <all>"),
		Once: "Allow", Always: "Always", Reject: "Reject"}
}

func ExampleQuestion_Ask() {
	c := &answering{
		result: backend.Raw(`{"outcome":{"outcome":"selected","optionId":"allow-once"}}`)}
	q := backend.Question{Call: titled("Write a.txt"),
		Once: "Allow", Reject: "Reject"}
	answer, err := q.Ask(context.Background(), c)
	fmt.Println(answer.Always, err)
	fmt.Println(c.asked[0])
	// Output:
	// false <nil>
	// session/request_permission {"toolCall":{"status":"pending","title":"Write a.txt","toolCallId":""},"options":[{"kind":"allow_once","name":"Allow","optionId":"allow-once"},{"kind":"reject_once","name":"Reject","optionId":"reject-once"}]}
}

// Clause A30.
func TestAsk(t *testing.T) {
	for result, want := range map[string]struct {
		always bool
		err    error
	}{
		`{"outcome":{"outcome":"selected","optionId":"allow-once"}}`:    {},
		`{"outcome":{"outcome":"selected","optionId":"allow-always"}}`:  {always: true},
		`{"outcome":{"outcome":"selected","optionId":"reject-once"}}`:   {err: backend.ErrRejected},
		`{"outcome":{"outcome":"selected","optionId":"reject-always"}}`: {err: backend.ErrRejected},
		`{"outcome":{"outcome":"selected","optionId":"cancelled"}}`:     {err: backend.ErrRejected},
		`{"outcome":{"outcome":"selected","optionId":""}}`:              {err: backend.ErrRejected},
		`{"outcome":{"outcome":"selected"}}`:                            {err: backend.ErrRejected},
		`{"outcome":{"outcome":"selected","optionId":"reject-once","OptionId":"allow-once"}}`: {
			err: backend.ErrRejected},
		`{"outcome":{"outcome":"cancelled"}}`:                         {err: backend.ErrCancelled},
		`{"outcome":{"outcome":"cancelled","optionId":"allow-once"}}`: {err: backend.ErrCancelled},
		`{"outcome":{"outcome":"deferred","optionId":"allow-once"}}`:  {err: backend.ErrRejected},
		`{"outcome":{"optionId":"allow-once"}}`:                       {err: backend.ErrRejected},
		`{"outcome":null}`:                                            {err: backend.ErrRejected},
		`null`:                                                        {err: backend.ErrRejected},
		`{}`:                                                          {err: backend.ErrRejected},
	} {
		answer, err := mayDelete().Ask(t.Context(), &answering{result: backend.Raw(result)})
		require.ErrorIs(t, err, want.err, result)
		require.Equal(t, want.always, answer.Always, result)
	}
	once := backend.Question{Once: "Allow", Reject: "Reject"}
	answer, err := once.Ask(t.Context(),
		&answering{result: backend.Raw(
			`{"outcome":{"outcome":"selected","optionId":"allow-always"}}`)})
	require.Equal(t, backend.ErrRejected, err, "it was not offered")
	require.False(t, answer.Always)
}

// Clause A30.
func TestAskFails(t *testing.T) {
	refused := errors.New("no such method")
	_, err := mayDelete().Ask(t.Context(), &answering{err: refused})
	require.ErrorIs(t, err, refused)
	require.ErrorContains(t, err, "cannot ask the client for permission")

	for _, result := range []string{``, `[]`, `{"outcome":"selected"}`,
		`{"outcome":{"outcome":7}}`} {
		_, err = mayDelete().Ask(t.Context(), &answering{result: backend.Raw(result)})
		require.ErrorContains(t, err, "cannot read the client's answer", result)
	}

	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(backend.ErrCancelled)
	_, err = mayDelete().Ask(ctx, &answering{err: refused})
	require.Equal(t, backend.ErrCancelled, err)
}
