package model

import (
	"bufio"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each kind of error of a server is told with what happened and what to do about it.
//
// Clause B4, B7.
func TestMessages(t *testing.T) {
	for _, record := range records(t, filepath.Join("testdata", "messages.txt")) {
		t.Run(record[0], func(t *testing.T) {
			t.Parallel()
			status, body, _ := strings.Cut(record[1], " ")
			code, err := strconv.Atoi(status)
			require.NoError(t, err)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				w.Header().Set("Retry-After-Ms", "1")
				for _, header := range record[3:] {
					name, value, _ := strings.Cut(header, " ")
					w.Header().Set(name, value)
				}
				w.WriteHeader(code)
				_, _ = io.WriteString(w, strings.ReplaceAll(body, "␤", "\n"))
			}))
			t.Cleanup(server.Close)
			e := open(t, setup{model: func(m *Model) { m.BaseURL = server.URL + "/v1" }})
			r := e.prompt("Hello")
			require.Equal(t, record[2], r.text())
			require.Equal(t, record[0] != "empty", strings.Contains(string(r.result), `"failed":true`))
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
