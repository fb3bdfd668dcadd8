package backend_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

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

// mayDelete offers both ways to allow what it asks for.
func mayDelete() backend.Question {
	return backend.Question{
		ToolCall: backend.Raw(`{"title":"Delete <all>"}`),
		Offers: []backend.Offer{{backend.AllowOnce, "Allow"}, {backend.AllowAlways, "Always"},
			{backend.RejectOnce, "Reject"}},
	}
}

func ExampleQuestion_Ask() {
	c := &answering{
		result: backend.Raw(`{"outcome":{"outcome":"selected","optionId":"allow-once"}}`)}
	q := backend.Question{ToolCall: backend.Raw(`{"title":"Write a.txt"}`),
		Offers: []backend.Offer{{backend.AllowOnce, "Allow"}}}
	answer, err := q.Ask(context.Background(), c)
	fmt.Println(answer, err)
	fmt.Println(c.asked[0])
	// Output:
	// allow_once <nil>
	// session/request_permission {"toolCall":{"title":"Write a.txt"},"options":[{"kind":"allow_once","name":"Allow","optionId":"allow-once"}]}
}

// Clause A30.
func TestAsk(t *testing.T) {
	for result, want := range map[string]backend.Answer{
		`{"outcome":{"outcome":"selected","optionId":"allow-once"}}`:    backend.AllowOnce,
		`{"outcome":{"outcome":"selected","optionId":"allow-always"}}`:  backend.AllowAlways,
		`{"outcome":{"outcome":"selected","optionId":"reject-once"}}`:   backend.RejectOnce,
		`{"outcome":{"outcome":"selected","optionId":"reject-always"}}`: backend.RejectOnce,
		`{"outcome":{"outcome":"selected","optionId":"cancelled"}}`:     backend.RejectOnce,
		`{"outcome":{"outcome":"selected","optionId":""}}`:              backend.RejectOnce,
		`{"outcome":{"outcome":"selected"}}`:                            backend.RejectOnce,
		`{"outcome":{"outcome":"cancelled"}}`:                           backend.Cancelled,
		`{"outcome":{"outcome":"cancelled","optionId":"allow-once"}}`:   backend.Cancelled,
		`{"outcome":{"outcome":"deferred","optionId":"allow-once"}}`:    backend.RejectOnce,
		`{"outcome":{"optionId":"allow-once"}}`:                         backend.RejectOnce,
		`{"outcome":null}`:                                              backend.RejectOnce,
		`null`:                                                          backend.RejectOnce,
		`{}`:                                                            backend.RejectOnce,
	} {
		answer, err := mayDelete().Ask(t.Context(), &answering{result: backend.Raw(result)})
		require.NoError(t, err, result)
		require.Equal(t, want, answer, result)
	}
	once := backend.Question{Offers: []backend.Offer{{backend.AllowOnce, "Allow"}}}
	answer, err := once.Ask(t.Context(),
		&answering{result: backend.Raw(
			`{"outcome":{"outcome":"selected","optionId":"allow-always"}}`)})
	require.NoError(t, err)
	require.Equal(t, backend.RejectOnce, answer, "it was not offered")
}

// Clause A30.
func TestAskFails(t *testing.T) {
	refused := errors.New("no such method")
	answer, err := mayDelete().Ask(t.Context(), &answering{err: refused})
	require.ErrorIs(t, err, refused)
	require.ErrorContains(t, err, "cannot ask the client for permission")
	require.Equal(t, backend.RejectOnce, answer)

	for _, result := range []string{``, `[]`, `{"outcome":"selected"}`,
		`{"outcome":{"outcome":7}}`} {
		answer, err = mayDelete().Ask(t.Context(), &answering{result: backend.Raw(result)})
		require.ErrorContains(t, err, "cannot read the client's answer", result)
		require.Equal(t, backend.RejectOnce, answer)
	}

	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(backend.ErrCancelled)
	answer, err = mayDelete().Ask(ctx, &answering{err: refused})
	require.Equal(t, backend.ErrCancelled, err)
	require.Equal(t, backend.RejectOnce, answer)
}
