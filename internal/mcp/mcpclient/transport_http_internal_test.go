package mcpclient

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	acpmcp "github.com/acp-agent/acp-agent/acp/mcp"
)

// The official TypeScript server leaves params out of the requests in its results, which the MCP
// SDK cannot read.
const (
	withoutParams = `{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"}}}}`
	withParams    = `{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list","params":{}}}}}`
)

// body returns what the MCP SDK reads of a response.
func body(t *testing.T, answer string, limit int) (string, error) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(server.Close)
	l := Options{limits: limits{MaxMessage: limit}}.withDefaults().limits
	transport, err := newHTTPTransport(t.Context(), Config{URL: server.URL, Transport: acpmcp.HTTP}, l, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	var ended error
	transport.fail = func(err error) { ended = err }
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"x"}`))
	require.NoError(t, err)
	res, err := transport.RoundTrip(req)
	require.NoError(t, err)
	read, err := io.ReadAll(res.Body)
	require.NoError(t, res.Body.Close())
	require.Equal(t, err, ended)
	return string(read), err
}

// Clause M7.
func TestResponseBodiesAreMended(t *testing.T) {
	const plain = `{"jsonrpc":"2.0","id":1,"result":{"a":1}}`
	const note = `{"jsonrpc":"2.0","method":"n"}`
	for name, test := range map[string]struct {
		answer string
		want   []string
	}{
		"as it should be":     {plain, []string{plain}},
		"a request":           {withoutParams, []string{withParams}},
		"events":              {": hello\n\nevent: message\ndata: " + note + "\n\ndata: " + withoutParams + "\n\n", []string{note, withParams}},
		"carriage returns":    {"data: " + note + "\r\rdata: " + plain + "\r\r", []string{note, plain}},
		"byte order mark":     {"\ufeff" + plain, []string{plain}},
		"mark before events":  {"\ufeffdata: " + plain + "\n\n", []string{plain}},
		"printed with breaks": {"{\n  \"jsonrpc\": \"2.0\",\n  \"id\": 1,\n  \"result\": {\"a\": 1}\n}\n", []string{plain}},
		"data in lines":       {"data: {\"jsonrpc\":\"2.0\",\"id\":1,\ndata: \"result\":{\"a\":1}}\n\n", []string{plain}},
		"no end of line":      {"data: " + plain, []string{plain}},
		"id as text":          {strings.Replace(plain, "1", `"1"`, 1), []string{plain}},
		"another id":          {strings.Replace(plain, `"id":1`, `"id":"x"`, 1), []string{plain}},
		"no id":               {strings.Replace(plain, `"id":1,`, "", 1), []string{plain}},
		"no version":          {strings.Replace(plain, `"jsonrpc":"2.0",`, "", 1), []string{plain}},
		"array":               {"[" + note + "," + plain + "]", []string{note, plain}},
		"bad event":           {"data: {oops\n\nrubbish\n\ndata: " + plain + "\n\n", []string{plain}},
		"error as text":       {`{"jsonrpc":"2.0","id":1,"error":"no disk"}`, []string{`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"no disk"}}`}},
		"error without id":    {`{"jsonrpc":"2.0","id":null,"error":{"code":"-32000","message":"no"}}`, []string{`{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"no"}}`}},
		"nothing":             {"", []string{`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"its answer was lost (it closed the connection), so it may have done what it was asked to do"}}`}},
		"not JSON":            {"{oops", []string{`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"its answer cannot be read: \"{oops\""}}`}},
		"no answer":           {"data: " + note + "\n\n", []string{note, `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"its answer was lost (it closed the connection), so it may have done what it was asked to do"}}`}},
		"neither":             {`{"jsonrpc":"2.0","id":1}`, []string{`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"its answer cannot be read: \"{\\\"jsonrpc\\\":\\\"2.0\\\",\\\"id\\\":1}\""}}`}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := body(t, test.answer, 1<<20)
			require.NoError(t, err)
			var messages []string
			for _, event := range strings.Split(strings.TrimSuffix(got, "\n\n"), "\n\n") {
				messages = append(messages, strings.TrimPrefix(event, "data: "))
			}
			require.Len(t, messages, len(test.want), got)
			for i := range messages {
				require.JSONEq(t, test.want[i], messages[i])
			}
		})
	}
}

func TestResponseBodyLimit(t *testing.T) {
	var long *limitError
	for _, answer := range []string{`{"x":"` + strings.Repeat("x", 1000), "data: " + strings.Repeat("x", 10_000) + "\n\n"} {
		_, err := body(t, answer, 200)
		require.ErrorAs(t, err, &long)
	}
	_, err := body(t, strings.Repeat("data: {\"method\":\"n\"}\n\n", 1000), 200)
	require.NoError(t, err)
}
