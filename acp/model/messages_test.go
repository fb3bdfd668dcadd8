package model

import (
	"bufio"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// answering returns a server that answers each request in this way, at once if it is asked again.
func answering(status int, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Retry-After-Ms", "1")
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// Each kind of error of a server is told with what happened and what to do about it.
//
// Clause B4, B7.
func TestMessages(t *testing.T) {
	const (
		leftOut   = " Later requests leave out your message. It remains in the history of the session. "
		another   = "Send another one to continue, or choose another model."
		otherwise = "Send it again in another form, correct the configuration of model `local` if that is the " +
			"reason, or choose another model."
		again   = " Send another message to try again, or choose another model."
		later   = " Send another message later, or choose another model."
		account = " Check what your account may use at the provider, and from where, then send another " +
			"message, or choose another model."
		correct = " Correct `models.local` in the configuration file, such as its `keyEnv` or `keyCommand`, or choose another model."
		examine = " In a terminal, acp-agent doctor checks the server and the key."
	)
	for name, test := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"content filter": {answering(400, `{"error":{"code":"content_filter","message":"The response was filtered."}}`),
			"The content filter of the model's server rejected the request: The response was filtered (HTTP status 400)." +
				leftOut + another},
		"unreadable call": {answering(400, `{"error":{"message":"Failed to call a function. Please adjust your prompt.",`+
			`"code":"tool_use_failed"}}`), "The model wrote a tool call that its server could not read: Failed to " +
			"call a function. Please adjust your prompt (HTTP status 400)." + again},
		"409": {answering(409, ""), "The model's server cannot answer now: Conflict (HTTP status 409)." + later},
		"region": {answering(403, `{"error":{"message":"Country, region, or territory not supported"}}`),
			"The model's server does not allow the request: Country, region, or territory not supported (HTTP status 403)." + account},
		"403 without words": {answering(403, ""), "The server wants a key, and none is configured for the model scripted: " +
			"Forbidden (HTTP status 403). Correct `models.local` in the configuration file, such as its `keyEnv` or `keyCommand`, then send another message to continue." + examine},
		"balance": {answering(429, `{"error":{"code":"1113","message":"Insufficient balance or no resource package."}}`),
			"The model's server rejected the request: Insufficient balance or no resource package (HTTP status 429). " +
				"Check your account at the provider, then send another message, or choose another model."},
		"without --jinja": {answering(500, `{"error":{"code":500,"message":"tools param requires --jinja flag"}}`),
			"The model's server rejected the request: tools param requires --jinja flag; start llama-server with --jinja " +
				"(HTTP status 500)." + correct},
		"no system prompts": {answering(500, `{"error":{"message":"System role not supported"}}`),
			"The model's server rejected the request: System role not supported (HTTP status 500)." + leftOut + otherwise},
		"MiniMax": {answering(200, `{"base_resp":{"status_code":2013,"status_msg":"invalid params"}}`),
			"Invalid params." + again},
		"limit": {answering(429, `{"error":{"message":"quota"}}`, "Retry-After", "7200", "Retry-After-Ms", ""),
			"The model's server cannot answer now: quota; try again in 2 hours (HTTP status 429)." + later},
		"other words": {answering(200, "data: hello\n\n"),
			"The model's server sent something that is not an answer: hello." + again + examine},
		"compressed": {answering(500, "\x1b\x02", "Content-Encoding", "br"),
			"The model's server cannot answer now: Internal Server Error: compressed (br) (HTTP status 500)." + later},
		"empty": {answering(200, "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"),
			"The model stopped without an answer. Send another message to continue."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(test.answer)
			t.Cleanup(server.Close)
			e := open(t, setup{model: func(m *Model) { m.BaseURL = server.URL + "/v1" }})
			r := e.prompt("Hello")
			require.Equal(t, test.want, r.text())
			require.Equal(t, name != "empty", strings.Contains(string(r.result), `"failed":true`))
		})
	}
}

// An error of the connection says what to check.
//
// Clause B4.
func TestMessagesAboutConnections(t *testing.T) {
	for name, test := range map[string]struct {
		serve func(t *testing.T) (address string)
		want  string
	}{
		"unknown authority": {func(t *testing.T) string {
			s := httptest.NewUnstartedServer(http.NotFoundHandler())
			s.Config.ErrorLog = log.New(io.Discard, "", 0)
			s.StartTLS()
			t.Cleanup(s.Close)
			return s.URL
		}, "its certificate is from an authority that is not known here; set SSL_CERT_FILE to a file with " +
			"the certificate of that authority."},
		"https to an http port": {func(t *testing.T) string {
			s := httptest.NewServer(http.NotFoundHandler())
			t.Cleanup(s.Close)
			return strings.Replace(s.URL, "http:", "https:", 1)
		}, "it does not speak https; check whether the model's baseURL must begin with http://."},
		"a TLS alert": {raw("\x15\x03\x01\x00\x02\x02\x46"), "it speaks https; the model's baseURL must begin with https://."},
		"another protocol": {raw("SSH-2.0-OpenSSH_9.6\r\n"), "what answers there is not an HTTP server; check the port in " +
			"the model's baseURL."},
		"a reset": {raw(""), "it closed the connection before it answered; check its log, and the port and the beginning " +
			"(http:// or https://) of the model's baseURL."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := test.serve(t)
			e := open(t, setup{model: func(m *Model) { m.BaseURL = address }})
			said := e.prompt("Hello").text()
			require.Contains(t, said, "Cannot reach the model's server at "+address+": "+test.want+
				" Send another message to continue.")
		})
	}
}

// raw returns a server that answers each connection with these bytes, or resets it if there are
// none.
func raw(answer string) func(t *testing.T) string {
	return func(t *testing.T) string {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		t.Cleanup(func() { listener.Close() })
		go func() {
			for {
				c, err := listener.Accept()
				if err != nil {
					return
				}
				if asked, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
					_, _ = io.Copy(io.Discard, asked.Body)
				}
				if _, _ = io.WriteString(c, answer); answer == "" {
					_ = c.(*net.TCPConn).SetLinger(0)
				}
				c.Close()
			}
		}()
		return "http://" + listener.Addr().String()
	}
}
