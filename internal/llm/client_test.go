package llm

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Headers and a query are sent, and what is secret in them is not in errors. They do not follow a
// redirect.
func TestHeadersAndQuery(t *testing.T) {
	var elsewhere, asked []string
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		elsewhere = append(elsewhere, r.URL.String())
	}))
	defer other.Close()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.String()+" "+r.Header.Get("Api-Key")+r.Header.Get("User-Agent"))
		if len(asked) == 1 {
			status(401, `{"error":{"message":"wrong key `+testKey+`"}}`)(w, r)
		} else {
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		}
	}))
	defer server.Close()
	for _, api := range []API{OpenAI, Responses, Anthropic} {
		asked = nil
		c := impatient(t, Model{API: api, BaseURL: server.URL + "/x/?api-version=1&b=2", Name: "a/b",
			Headers: func() (map[string]string, error) {
				return map[string]string{"api-key": testKey, "user-agent": "me"}, nil
			}})
		_, failed := ask(t, c)
		require.Equal(t, KeyRejected, failed.Kind)
		_, err := c.List(t.Context())
		require.ErrorContains(t, err, "redirects to")
		path, list := c.format.answers, c.format.models
		joint := "?"
		if api == Anthropic {
			joint = "&"
		}
		require.Equal(t, []string{"/x" + path + "?api-version=1&b=2 " + testKey + "me",
			"/x" + list + joint + "api-version=1&b=2 " + testKey + "me"}, asked)
	}
	require.Empty(t, elsewhere)
}

// Clause B1.
func TestKey(t *testing.T) {
	t.Run("is not sent elsewhere", func(t *testing.T) {
		elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			t.Error("asked")
		}))
		defer elsewhere.Close()
		for _, api := range []API{OpenAI, Anthropic} {
			_, failed := ask(t, asking(t, api, status(302, "", "Location", elsewhere.URL)))
			require.Equal(t, Misconfigured, failed.Kind)
			_, err := asking(t, api, status(308, "", "Location", elsewhere.URL)).List(t.Context())
			require.ErrorContains(t, err, "redirects")
			asking(t, api, status(307, "", "Location", elsewhere.URL)).AskWindow(t.Context())
		}
	})
	t.Run("is in the header", func(t *testing.T) {
		check := func(header, want string) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				if got := r.Header.Get(header); got != want {
					t.Errorf("got %q", got)
				}
				body, _ := io.ReadAll(r.Body)
				if r.Header.Del(header); strings.Contains(fmt.Sprint(r.URL, r.Header, string(body)),
					testKey) {
					t.Error("the key is also somewhere else")
				}
			}
		}
		ask(t, asking(t, OpenAI, check("Authorization", "Bearer "+testKey)))
		ask(t, asking(t, Anthropic, check("X-Api-Key", testKey)))
	})
	t.Run("can be replaced", func(t *testing.T) {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer new" {
				status(401, "")(w, r)
				return
			}
			says(finished)(w, r)
		}))
		defer server.Close()
		var rejected []string
		events, failed := ask(t, impatient(t, Model{API: OpenAI, BaseURL: server.URL,
			Key: func(_ context.Context, r string) (string, error) {
				if rejected = append(rejected, r); r == "" {
					return "old\n", nil
				}
				return "new", nil
			}}))
		require.Nil(t, failed)
		require.Len(t, events, 1)
		require.Equal(t, []string{"", "old"}, rejected)
	})
	for name, rejects := range map[string]http.HandlerFunc{
		"in a body":  status(200, `{"code":401,"message":"token expired"}`),
		"in a event": says(`data: {"error":{"message":"invalid_api_key","code":401}}` + "\n\n"),
		"forbidden":  status(403, `{"message":"the token is expired"}`),
	} {
		t.Run("is replaced that is rejected "+name, func(t *testing.T) {
			c := asking(t, OpenAI, func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Authorization") == "Bearer new" {
					says(chunk(`{"content":"Hi"}`), finished)(w, r)
				} else {
					rejects(w, r)
				}
			})
			keys := []string{"old", "new", "unused"}
			c.model.Key = func(context.Context, string) (key string, _ error) {
				key, keys = keys[0], keys[1:]
				return key, nil
			}
			events, failed := ask(t, c)
			require.Nil(t, failed)
			require.Equal(t, []Event{TextDelta("Hi"), Finish{Reason: Stopped}}, events)
			require.Equal(t, []string{"unused"}, keys)
		})
	}
	t.Run("cannot be had", func(t *testing.T) {
		c := asking(t, OpenAI, nil)
		c.model.Key = func(context.Context, string) (string, error) {
			return "", errors.New("the vault is locked")
		}
		events, failed := ask(t, c)
		require.Empty(t, events)
		require.Equal(t,
			&Error{KeyRejected, 0, "there is no key for the model m: the vault is locked"}, failed)
	})
}

func TestList(t *testing.T) {
	for _, record := range records(t, "lists.txt") {
		t.Run(record[0], func(t *testing.T) {
			api, path, _ := strings.Cut(record[1], " ")
			names, err := asking(t, API(api), func(w http.ResponseWriter, r *http.Request) {
				if got := r.Method + " " + r.URL.Path; got != "GET "+path {
					t.Errorf("got %s", got)
				}
				status(200, record[2])(w, r)
			}).List(t.Context())
			require.NoError(t, err)
			require.Equal(t, strings.Join(record[3:], ""), strings.Join(names, " "))
		})
	}
	_, err := asking(t, OpenAI, status(200, "<html>")).List(t.Context())
	require.ErrorContains(t, err, "the server sent a web page instead of an answer")
	_, err = asking(t, OpenAI, status(200, `{"error":{"message":"It broke."}}`)).List(t.Context())
	require.EqualError(t, err, "It broke")
	_, err = asking(t, OpenAI, status(404, "404 page not found")).List(t.Context())
	require.ErrorContains(t, err, "check the model's baseURL, http://127.0.0.1")
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("stopped")
	cancel(cause)
	_, err = asking(t, OpenAI, nil).List(ctx)
	require.Equal(t, cause, err)
}

func TestModelDefaults(t *testing.T) {
	require.Equal(t, Model{API: OpenAI, BaseURL: "https://api.openai.com/v1",
		ContextTokens: 128_000, PDF: new(true)}, New(Model{}).Model())
	require.Equal(t, Model{API: Anthropic, BaseURL: "https://api.anthropic.com",
		ContextTokens: 128_000, MaxTokens: 8192, PDF: new(false)}, New(Model{API: Anthropic}).Model())
	given := Model{API: OpenAI, BaseURL: "http://localhost:1/v1", Name: "y",
		ContextTokens: 10, MaxTokens: 2, PDF: new(false)}
	require.Equal(t, given, New(given).Model())
	require.PanicsWithValue(t, `llm: unknown API "opena1"`, func() { New(Model{API: "opena1"}) })
}

// The standard variables for proxies and certificates are read once in a process, so this test runs
// itself as another one.
func TestEnvironment(t *testing.T) {
	const name = "LLM_TEST_BASE_URL"
	if address := os.Getenv(name); address != "" {
		for e, err := range impatient(t, Model{API: OpenAI, BaseURL: address}).Stream(t.Context(),
			Request{}) {
			fmt.Println(e, err)
		}
		return
	}
	run := func(address, variable string) string {
		self := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestEnvironment$")
		self.Env = append(os.Environ(), "NO_PROXY=", "no_proxy=", name+"="+address, variable)
		out, err := self.CombinedOutput()
		require.NoError(t, err, string(out))
		return string(out)
	}
	t.Run("proxy", func(t *testing.T) {
		proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			says(chunk(`{"content":"for `+r.URL.String()+`"}`), finished)(w, r)
		}))
		defer proxy.Close()
		require.Contains(t, run("http://model.invalid/v1", "HTTP_PROXY="+proxy.URL),
			"for http://model.invalid/v1/chat/completions")
	})
	t.Run("a proxy that fails", func(t *testing.T) {
		proxy := httptest.NewServer(status(407, ""))
		proxy.Close()
		for scheme, variable := range map[string]string{"http": "HTTP_PROXY", "https": "HTTPS_PROXY"} {
			said := run(scheme+"://model.invalid/v1",
				variable+"="+strings.Replace(proxy.URL, "//", "//user:pw@", 1))
			require.Contains(t, said, "cannot reach the model's server at "+scheme+
				"://model.invalid/v1 through the proxy "+proxy.URL+" ("+variable+"): ")
			require.Contains(t, said, "connection refused")
			require.NotContains(t, said, "pw")
		}
	})
	t.Run("a proxy that answers itself", func(t *testing.T) {
		proxy := httptest.NewServer(status(404, "<title>Denied</title>"))
		defer proxy.Close()
		require.Contains(t, run("http://model.invalid/v1", "HTTP_PROXY="+proxy.URL),
			`Not Found ("Denied") through the proxy `+proxy.URL+" (HTTP_PROXY); check")
	})
	t.Run("certificates", func(t *testing.T) {
		if runtime.GOOS == "windows" || runtime.GOOS == "darwin" {
			t.Skip("SSL_CERT_FILE is not read on Windows and macOS, where certificates come from " +
				"the system")
		}
		server := httptest.NewTLSServer(says(chunk(`{"content":"Hello"}`), finished))
		defer server.Close()
		file := filepath.Join(t.TempDir(), "ca.pem")
		block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE",
			Bytes: server.Certificate().Raw})
		require.NoError(t, os.WriteFile(file, block, 0o600))
		require.Contains(t, run(server.URL, "SSL_CERT_FILE="+file), "Hello")
	})
}

// A caller whose loop panics leaves no request behind.
func TestPanicEndsTheRequest(t *testing.T) {
	ended := make(chan struct{})
	c := asking(t, OpenAI, func(w http.ResponseWriter, r *http.Request) {
		says(`data: {"choices":[{"index":0,"delta":{"content":"Hello"}}]}`+"\n\n")(w, r)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		close(ended)
	})
	require.Panics(t, func() {
		for range c.Stream(t.Context(), Request{Messages: []Message{UserText("Hi")}}) {
			panic("in the loop")
		}
	})
	<-ended
}
