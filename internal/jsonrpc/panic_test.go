package jsonrpc_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/jsonrpc"
)

func TestW8_APanicIsLoggedWithItsStackAndWithoutContent(t *testing.T) {
	for _, method := range []string{"panic", "panic in accept"} {
		t.Run("W8/"+method, func(t *testing.T) {
			var log bytes.Buffer
			lines := serveAll(t, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":["secret"]}`), &responder{},
				jsonrpc.Options{Logger: slog.New(slog.NewJSONHandler(&log, nil))})
			require.Equal(t, []string{`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"internal error"}}`}, lines)
			var entry struct{ Level, Method, Stack string }
			require.NoError(t, json.Unmarshal(log.Bytes(), &entry))
			require.Equal(t, "ERROR", entry.Level)
			require.Equal(t, method, entry.Method)
			require.Contains(t, entry.Stack, "responder")
			require.NotContains(t, log.String(), "secret")
		})
	}
}

func TestW8_AnErrorOfTheRuntimeIsNamedInTheLog(t *testing.T) {
	var log bytes.Buffer
	serveAll(t, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"x"}`), jsonrpc.HandlerFunc(func(context.Context, *jsonrpc.Request) jsonrpc.Work {
		var none *jsonrpc.Request
		_ = none.Method
		return nil
	}), jsonrpc.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	require.Contains(t, log.String(), "nil pointer dereference")
}

func TestW8_WorkThatEndsItsGoroutineIsAnswered(t *testing.T) {
	lines := serveAll(t, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"x"}`), jsonrpc.HandlerFunc(func(context.Context, *jsonrpc.Request) jsonrpc.Work {
		return func() (json.RawMessage, error) { runtime.Goexit(); return nil, nil }
	}), jsonrpc.Options{})
	require.Equal(t, []string{`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"internal error"}}`}, lines)
}
