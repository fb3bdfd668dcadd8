package secret_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/text/secret"
)

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
