package mcpclient

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/stretchr/testify/require"

	acpmcp "github.com/acp-agent/acp-agent/acp/mcp"
)

// The official TypeScript server leaves params out of the requests in its results, which the MCP
// SDK cannot read.
const (
	withoutParams = `{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"}}}}`
	withParams    = `{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list","params":{}}}}}`
)

// answers returns what the MCP SDK reads of a response to a request, encoded, up to the answer, and
// the error that it is or with which the connection has ended.
func answers(t *testing.T, response string, limit int) (messages []string, err error) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, response)
	}))
	defer server.Close()
	l := Options{limits: limits{MaxMessage: limit}}.withDefaults().limits
	ctx := t.Context()
	transport, err := newHTTPTransport(Config{URL: server.URL, Transport: acpmcp.HTTP}, newInbox(l, quiet(), nil), credentials{}, nil)
	require.NoError(t, err)
	defer func() { _ = transport.end(nil) }()
	id, err := jsonrpc.MakeID(1.0)
	require.NoError(t, err)
	require.NoError(t, transport.Write(ctx, &jsonrpc.Request{ID: id, Method: "x"}))
	for {
		m, err := transport.Read(ctx)
		if err != nil {
			return messages, err
		}
		encoded, err := jsonrpc.EncodeMessage(m)
		require.NoError(t, err)
		messages = append(messages, string(encoded))
		if answer, ok := m.(*jsonrpc.Response); ok {
			return messages, answer.Error
		}
	}
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
		"id as text":          {strings.Replace(plain, "1", `"1"`, 1), []string{plain}},
		"no id":               {strings.Replace(plain, `"id":1,`, "", 1), []string{`{"jsonrpc":"2.0","id":1,"error":{"code":0,"message":"its answer cannot be read: \"{\\\"jsonrpc\\\":\\\"2.0\\\",\\\"result\\\":{\\\"a\\\":1}}\""}}`}},
		"no version":          {strings.Replace(plain, `"jsonrpc":"2.0",`, "", 1), []string{`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"its answer cannot be read: \"{\\\"id\\\":1,\\\"result\\\":{\\\"a\\\":1}}\""}}`}},
		"array":               {"[" + note + "," + plain + "]", []string{note, plain}},
		"bad event":           {"data: {oops\n\nrubbish\n\ndata: " + plain + "\n\n", []string{plain}},
		"error as text":       {`{"jsonrpc":"2.0","id":1,"error":"no disk"}`, []string{`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"its answer cannot be read: \"{\\\"jsonrpc\\\":\\\"2.0\\\",\\\"id\\\":1,\\\"error\\\":\\\"no disk\\\"}\""}}`}},
		"nothing":             {"", []string{`{"jsonrpc":"2.0","id":1,"error":{"code":0,"message":"its answer was lost (it closed the connection), so it may have done what it was asked to do"}}`}},
		"not JSON":            {"{oops", []string{`{"jsonrpc":"2.0","id":1,"error":{"code":0,"message":"its answer cannot be read: \"{oops\""}}`}},
		"no answer":           {"data: " + note + "\n\n", []string{note, `{"jsonrpc":"2.0","id":1,"error":{"code":0,"message":"its answer was lost (it closed the connection), so it may have done what it was asked to do"}}`}},
		"neither":             {`{"jsonrpc":"2.0","id":1}`, []string{`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"its answer cannot be read: \"{\\\"jsonrpc\\\":\\\"2.0\\\",\\\"id\\\":1}\""}}`}},
	} {
		t.Run(name, func(t *testing.T) {
			messages, _ := answers(t, test.answer, 1<<20)
			require.Len(t, messages, len(test.want), messages)
			for i := range messages {
				require.JSONEq(t, test.want[i], messages[i])
			}
		})
	}
}

func TestResponseBodyLimit(t *testing.T) {
	var long *limitError
	for _, answer := range []string{`{"x":"` + strings.Repeat("x", 1000), "data: " + strings.Repeat("x", 10_000) + "\n\n"} {
		_, err := answers(t, answer, 200)
		require.ErrorAs(t, err, &long)
	}
	messages, err := answers(t, strings.Repeat("data: {\"jsonrpc\":\"2.0\",\"method\":\"n\"}\n\n", 1000)+
		"data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n", 200)
	require.NoError(t, err)
	require.Len(t, messages, 1001)
}
