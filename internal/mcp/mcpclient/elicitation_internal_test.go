package mcpclient

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

// pages are addresses, and whether the user can be shown them honestly.
var pages = map[string]bool{
	"https://example.com":                       true,
	"http://localhost:8080/a?b=c%20d#e":         true,
	"https://[::1]/":                            true,
	"https://127.0.0.1:1":                       true,
	"https://xn--80ak6aa92e.com/":               true,
	"https://a_b.example.com./":                 true,
	"ftp://example.com":                         false,
	"javascript:alert(1)":                       false,
	"https:///path":                             false,
	"https://":                                  false,
	"https://accounts.example.com@evil.test/":   false,
	"https://a:b@evil.test/":                    false,
	"https://\u0430pple.com/":                   false, // a Cyrillic letter
	"https://%D0%B0pple.com/":                   false, // the same
	"https://example.com\\@evil.test/":          false,
	"https://example.com/\u202emoc.live":        false,
	"https://example.com/a b":                   false,
	"https://example.com/\n":                    false,
	"https://example.com\u2044evil.test":        false, // a slash of fractions
	"https://2130706433/":                       false, // 127.0.0.1 in browsers
	"https://0x7f.1/":                           false,
	"https://127.1/":                            false,
	"https://[fe80::1%25eth0]/":                 false,
	"https://a..b/":                             false,
	"https://example.com/" + longString:         false,
	"https://example.com/<script>":              false,
	"https://example.com;evil.test/":            false,
	"https://example.com,evil.test/":            false,
	"https://example.com:443:80/":               false,
	"HTTPS://EXAMPLE.COM/":                      true,
	"https://example.com/\u00e9":                false,
	"//example.com":                             false,
	"https://example.com/?next=//x@example.org": true,
}

var longString = strings.Repeat("a", maxPage)

func TestPagesAreWhatTheyLookLike(t *testing.T) {
	for address, honest := range pages {
		err := checkElicit(&mcp.ElicitParams{Mode: urlMode, Message: "Go", URL: address})
		require.Equal(t, honest, err == nil, "%q: %v", address, err)
	}
}

func TestQuestionsAreVisible(t *testing.T) {
	for message, honest := range map[string]bool{
		"Who are you?\r\nSay it.": true, "\u0645\u06cc\u200c\u062e": true, "": true,
		"\u202eyek": false, "a\u200bb": false, "\x1b[2J": false, "a\rb": false, "\U000e0041": false,
		strings.Repeat("a", maxQuestion+1): false,
	} {
		err := checkElicit(&mcp.ElicitParams{Mode: urlMode, URL: "https://example.com", Message: message})
		require.Equal(t, honest, err == nil, "%q: %v", message, err)
	}
	for schema, honest := range map[string]bool{
		`{"type":"object","properties":{"a":{"type":"string","title":"A","description":"x\ny","default":"1\n2"}}}`: true,
		`{"properties":{"a":{"title":"A\nB"}}}`:                                       false,
		`{"properties":{"a":{"title":"\u202eA"}}}`:                                    false,
		`{"properties":{"a":{"description":"A\u200b"}}}`:                              false,
		`{"properties":{"a\u200b":{}}}`:                                               false,
		`{"properties":{"a":{"enum":["x"],"enumNames":["x\u2066"]}}}`:                 false,
		`{"properties":{"a":{"oneOf":[{"const":"x","title":"\u001b[2J"}]}}}`:          false,
		`{"properties":{"a":{"default":"\u0000"}}}`:                                   false,
		`{"required":["a\nb"]}`:                                                       false,
		`{"properties":{"a":{"title":"` + strings.Repeat("a", maxLabel+1) + `"}}}`:    false,
		`{"properties":{"a":{"description":"` + strings.Repeat("a", maxForm) + `"}}}`: false,
		`[]`: false, `"a"`: false,
	} {
		p := &mcp.ElicitParams{Mode: formMode}
		require.NoError(t, json.Unmarshal([]byte(schema), &p.RequestedSchema))
		err := checkElicit(p)
		require.Equal(t, honest, err == nil, "%s: %v", schema, err)
	}
}

// What is accepted is opened as it is shown.
func FuzzPages(f *testing.F) {
	for address := range pages {
		f.Add(address)
	}
	f.Fuzz(func(t *testing.T, address string) {
		u, err := parsePage(address)
		if err != nil {
			return
		}
		_, rest, _ := strings.Cut(address, "://")
		require.True(t, strings.HasPrefix(rest, u.Host), "%q: %q", address, u.Host)
		rest = rest[len(u.Host):]
		require.True(t, rest == "" || strings.ContainsRune("/?#", rune(rest[0])), "%q", address)
	})
}
