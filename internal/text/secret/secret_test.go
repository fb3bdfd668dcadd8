package secret_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/text/secret"
)

func TestText(t *testing.T) {
	var s secret.Scrubber
	require.Equal(t, "nothing is known", s.Text("nothing is known"))
	s.Add("Bearer tangerine-1")
	s.Add("tangerine-1-and-more")
	s.Add("Bearer xkqjvbznm")
	s.Add("true")
	s.Add(`{"Authorization":"Bearer tangerine-2"}`)
	s.Add("some ordinary words")
	s.Add("a/b \"c\"=é")
	for text, want := range map[string]string{
		"Authorization: Bearer tangerine-1":     "Authorization: [secret]",
		"Authorization=tangerine-2":             "Authorization=[secret]",
		"Bearer of tangerine-1":                 "Bearer of [secret]",
		"tangerine-1-and-more":                  "[secret]",
		"without its name: xkqjvbznm":           "without its name: [secret]",
		"it is true, ordinary words are":        "it is true, ordinary words are",
		"some ordinary words":                   "[secret]",
		`{"key":"a/b \"c\"=é"}`:                 `{"key":"[secret]"}`,
		"?key=a%2Fb+%22c%22%3D%C3%A9":           "?key=[secret]",
		"/a%2Fb%20%22c%22=%C3%A9/":              "/[secret]/",
		"https://example.com/path is not known": "https://example.com/path is not known",
	} {
		require.Equal(t, want, s.Text(text))
	}
	s.Add("not known")
	require.Equal(t, "path is [secret]", s.Text("path is not known"), "one was added")
	var none *secret.Scrubber
	require.Equal(t, "tangerine-1", none.Text("tangerine-1"))
}

func TestTextWithURLs(t *testing.T) {
	var s secret.Scrubber
	s.AddServer("https://user-1:pass-1@example.com:8443/api/s/t0ken%2F1/messages"+
		"?profile=my-profile&bare-key&k=a%2Bb%2Bc%2Bd#frag-1", nil, nil)
	s.AddServer("https://%zz/unparsable-1", nil, nil)
	for text, want := range map[string]string{
		`Post "https://user-1:***@example.com:8443/api/s/t0ken%2F1/messages": refused`: `Post "https://[secret]@example.com:8443/api/s/[secret]/messages": refused`,
		`Post "https://Example.com:8443/other?session=x": refused`:                     `Post "https://Example.com:8443/other?[secret]": refused`,
		"connected to https://example.com:8443":                                        "connected to https://example.com:8443",
		"cannot connect to https://example.com:8443/acp: refused":                      "cannot connect to https://example.com:8443/acp: refused",
		"(see https://example.com:8443/?b.)!":                                          "(see https://example.com:8443/?[secret].)!",
		"see https://example.com/docs?messages":                                        "see https://example.com/docs?messages",
		"no messages for t0ken/1 or t0ken%2F1":                                         "no messages for [secret] or [secret]",
		"user-1 pass-1 my-profile bare-key a+b+c+d a%2Bb%2Bc%2Bd frag-1":               "[secret] [secret] [secret] [secret] [secret] [secret] [secret]",
		"bad URL https://%zz/unparsable-1":                                             "bad URL [secret]",
	} {
		require.Equal(t, want, s.Text(text))
	}
}

func TestAddEnvironment(t *testing.T) {
	t.Setenv("MY_SERVICE_TOKEN", "tangerine-1")
	t.Setenv("MY_SERVICE_LANGUAGE", "tangerine-2")
	var s secret.Scrubber
	s.AddEnvironment()
	require.Equal(t, "[secret] tangerine-2", s.Text("tangerine-1 tangerine-2"))
}

func TestStart(t *testing.T) {
	var s secret.Scrubber
	s.Add("tangerine-1")
	s.Add("rine-123456")
	require.Equal(t, "token [secret]", s.Start("token tangerine"))
	require.Equal(t, "token [secret]", s.Start("token tangerine-1"))
	require.Equal(t, "token tang", s.Start("token tang"), "too short")
	require.Equal(t, "tangerine was cut", s.Start("tangerine was cut"))
	var none *secret.Scrubber
	require.Equal(t, "tangerine", none.Start("tangerine"))
}

func TestJSON(t *testing.T) {
	var s secret.Scrubber
	s.Add("tangerine-1")
	s.Add("123456")
	for in, want := range map[string]string{
		`{"b" : 1.0, "a":"\u0061"}`:               `{"b" : 1.0, "a":"\u0061"}`,
		`{"a":["t\u0061ngerine-1",null,1234567]}`: `{"a":["[secret]",null,"[secret]7"]}`,
		`{"tangerine-1":true}`:                    `{"[secret]":true}`,
		`"{\"a\":\"tangerine-1\"}"`:               `"{\"a\":\"[secret]\"}"`,
		``:                                        ``,
	} {
		require.Equal(t, want, string(s.JSON(json.RawMessage(in))))
	}
}

func TestHideURL(t *testing.T) {
	for in, want := range map[string]string{
		"https://example.com":                                      "https://example.com",
		"https://example.com:8443/":                                "https://example.com:8443/",
		"https://example.com/mcp/v1":                               "https://example.com/mcp/v1",
		"https://example.com/My-server/a_b.json":                   "https://example.com/My-server/a_b.json",
		"https://example.com/2025-11-25/mcp/":                      "https://example.com/2025-11-25/mcp/",
		"https://example.com/api/mcp/s/OTk5YWJj/mcp?x=1":           "https://example.com/api/mcp/s/[secret]/mcp?[secret]",
		"https://example.com/0b8e5f6c-1d2e-4f3a-9b8c-7d6e5f4a3b2c": "https://example.com/[secret]",
		"https://example.com/abcdefghijklmnopqrstuvw":              "https://example.com/[secret]",
		"https://example.com/qhrmzkptlwbxnvgd":                     "https://example.com/[secret]",
		"https://example.com/abcdefghijklmnop":                     "https://example.com/[secret]",
		"https://example.com/xkqjvbznm":                            "https://example.com/[secret]",
		"https://example.com/ofkesiturama-ofkesiturama":            "https://example.com/[secret]",
		"https://example.com/downstream/integrations/jsonrpc":      "https://example.com/downstream/integrations/jsonrpc",
		"https://example.com/https/server-filesystem":              "https://example.com/https/server-filesystem",
		"https://example.com/ofkesiturama":                         "https://example.com/ofkesiturama", // like a word
		"https://example.com/tangerine-1":                          "https://example.com/[secret]",
		"https://example.com/v1.2/mcp.json":                        "https://example.com/v1.2/mcp.json",
		"https://example.com/12345678":                             "https://example.com/[secret]",
		"https://example.com/a-b-c-d-e":                            "https://example.com/[secret]",
		"https://example.com/mcp%2Fv1":                             "https://example.com/[secret]",
		"https://example.com/t0ken":                                "https://example.com/[secret]",
		"https://t0ken@example.com":                                "https://[secret]@example.com",
		"https://me:t0ken@example.com/":                            "https://[secret]@example.com/",
		"https://example.com?t0ken":                                "https://example.com?[secret]",
		"https://example.com/#t0ken":                               "https://example.com/#[secret]",
		"https://example.com//t0ken":                               "https://example.com//[secret]",
		"https://me:t0/ken@example.com":                            "[secret]",
		"t0ken":                                                    "[secret]",
		"mailto:t0ken":                                             "[secret]",
	} {
		require.Equal(t, want, secret.HideURL(in), in)
	}
	require.Equal(t, `--url="https://example.com/[secret]" b`,
		secret.HideURLs(`--url="https://example.com/t0ken" b`))
}

func TestIsLoopback(t *testing.T) {
	for _, host := range []string{"127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1", "localhost", "LOCALHOST"} {
		require.True(t, secret.IsLoopback(host), host)
	}
	for _, host := range []string{"", "0.0.0.0", "10.0.0.1", "localhost.example", "127.0.0.1.example"} {
		require.False(t, secret.IsLoopback(host), host)
	}
}

// A revision of a protocol is no secret, even if a variable has it as its value.
func TestDatesAreNoSecrets(t *testing.T) {
	s := secret.OfCommand(nil, []string{"VER=2099-01-01", "KEY=2099-01-01x"})
	require.Equal(t, "unsupported protocol version 2099-01-01", s.Text("unsupported protocol version 2099-01-01"))
	require.NotContains(t, s.Text("key 2099-01-01x"), "2099-01-01x")
}

func TestMask(t *testing.T) {
	for text, want := range map[string]string{
		"API_TOKEN=abc":                         "API_TOKEN=[secret]",
		`"password": "x y"`:                     `"password": "[secret] y"`,
		"Authorization: Bearer abc.def":         "Authorization: [secret]",
		"export GITHUB_PAT='abc'; make":         "export GITHUB_PAT='[secret]'; make",
		"https://me:pw@host/path?x=1":           "https://[secret]@host/path?x=1",
		"https://host/path":                     "https://host/path",
		"ghp_aaaaaaaaaaaaaaaaaaaaaaaa":          "[secret]",
		"total = price * 2; tokens := 3":        "total = price * 2; tokens := 3",
		"key: value":                            "key: [secret]",
		"func f(a int) error { return nil }":    "func f(a int) error { return nil }",
		"AKIAABCDEFGHIJKLMNOP and sk-short":     "[secret] and sk-short",
		"DB_PASSWORD=one\nDB_HOST=two":          "DB_PASSWORD=[secret]\nDB_HOST=two",
		"curl -H 'Cookie: session=1' host":      "curl -H 'Cookie: [secret]' host",
		"eyJhbGciOiJIUzI1.eyJzdWIiOiIxMjM0.abc": "[secret]",
	} {
		require.Equal(t, want, secret.Mask(text))
	}
}
