package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/runtime"
)

// answering is a client that answers every request in the same way.
type answering struct {
	runtime.Client
	result runtime.Raw
	err    error
	asked  []string
}

func (a *answering) Call(_ context.Context, method string, params runtime.Raw) runtime.Work {
	a.asked = append(a.asked, method+" "+string(params))
	return func() (runtime.Raw, error) { return a.result, a.err }
}

// mayDelete offers both ways to allow what it asks for.
func mayDelete() runtime.Question {
	return runtime.Question{
		ToolCall: runtime.Raw(`{"title":"Delete <all>"}`),
		Offers:   []runtime.Offer{{runtime.AllowOnce, "Allow"}, {runtime.AllowAlways, "Always"}, {runtime.RejectOnce, "Reject"}},
	}
}

func ExampleQuestion_Ask() {
	c := &answering{result: runtime.Raw(`{"outcome":{"outcome":"selected","optionId":"allow-once"}}`)}
	q := runtime.Question{ToolCall: runtime.Raw(`{"title":"Write a.txt"}`), Offers: []runtime.Offer{{runtime.AllowOnce, "Allow"}}}
	answer, err := q.Ask(context.Background(), c)
	fmt.Println(answer, err)
	fmt.Println(c.asked[0])
	// Output:
	// allow_once <nil>
	// session/request_permission {"toolCall":{"title":"Write a.txt"},"options":[{"optionId":"allow-once","name":"Allow","kind":"allow_once"}]}
}

func TestA30_OnlyAnOfferThatWasSelectedAllows(t *testing.T) {
	for result, want := range map[string]runtime.Answer{
		`{"outcome":{"outcome":"selected","optionId":"allow-once"}}`:    runtime.AllowOnce,
		`{"outcome":{"outcome":"selected","optionId":"allow-always"}}`:  runtime.AllowAlways,
		`{"outcome":{"outcome":"selected","optionId":"reject-once"}}`:   runtime.RejectOnce,
		`{"outcome":{"outcome":"selected","optionId":"reject-always"}}`: runtime.RejectOnce,
		`{"outcome":{"outcome":"selected","optionId":"cancelled"}}`:     runtime.RejectOnce,
		`{"outcome":{"outcome":"selected","optionId":""}}`:              runtime.RejectOnce,
		`{"outcome":{"outcome":"selected"}}`:                            runtime.RejectOnce,
		`{"outcome":{"outcome":"cancelled"}}`:                           runtime.Cancelled,
		`{"outcome":{"outcome":"cancelled","optionId":"allow-once"}}`:   runtime.Cancelled,
		`{"outcome":{"outcome":"deferred","optionId":"allow-once"}}`:    runtime.RejectOnce,
		`{"outcome":{"optionId":"allow-once"}}`:                         runtime.RejectOnce,
		`{"outcome":null}`:                                              runtime.RejectOnce,
		`null`:                                                          runtime.RejectOnce,
		`{}`:                                                            runtime.RejectOnce,
	} {
		answer, err := mayDelete().Ask(t.Context(), &answering{result: runtime.Raw(result)})
		require.NoError(t, err, result)
		require.Equal(t, want, answer, result)
	}
	once := runtime.Question{Offers: []runtime.Offer{{runtime.AllowOnce, "Allow"}}}
	answer, err := once.Ask(t.Context(), &answering{result: runtime.Raw(`{"outcome":{"outcome":"selected","optionId":"allow-always"}}`)})
	require.NoError(t, err)
	require.Equal(t, runtime.RejectOnce, answer, "it was not offered")
}

func TestA30_WhatCannotBeAskedIsNotAllowed(t *testing.T) {
	refused := errors.New("no such method")
	answer, err := mayDelete().Ask(t.Context(), &answering{err: refused})
	require.ErrorIs(t, err, refused)
	require.ErrorContains(t, err, "the client could not be asked for permission")
	require.Equal(t, runtime.RejectOnce, answer)

	for _, result := range []string{``, `[]`, `{"outcome":"selected"}`, `{"outcome":{"outcome":7}}`} {
		answer, err = mayDelete().Ask(t.Context(), &answering{result: runtime.Raw(result)})
		require.ErrorContains(t, err, "its answer cannot be read", result)
		require.Equal(t, runtime.RejectOnce, answer)
	}

	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(runtime.ErrCancelled)
	answer, err = mayDelete().Ask(ctx, &answering{err: refused})
	require.Equal(t, runtime.ErrCancelled, err)
	require.Equal(t, runtime.RejectOnce, answer)
}
