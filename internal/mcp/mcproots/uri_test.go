package mcproots

import (
	"errors"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/acp-agent/acp-agent/workspace"
)

// path spells a path with slashes in the platform's way.
func path(slashed string) string {
	if runtime.GOOS == "windows" {
		return `C:` + filepath.FromSlash(slashed)
	}
	return slashed
}

func dir(t interface{ Fatal(...any) }, path string) workspace.Dir {
	d, err := workspace.ParseDir(path)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Clause M11.
func TestRoundTrip(t *testing.T) {
	name := `[^/\x00]{1,12}`
	if runtime.GOOS == "windows" {
		name = `[^/\\\x00:|]{1,12}`
	}
	names := rapid.SliceOfN(rapid.StringMatching(name), 1, 6)
	rapid.Check(t, func(t *rapid.T) {
		parts := names.Draw(t, "names")
		for _, p := range parts {
			if p == "." || p == ".." {
				t.Skip("not the name of an entry")
			}
		}
		d := dir(t, path("/"+strings.Join(parts, "/")))
		back, err := parseURI(d.URI())
		if err != nil || back != d {
			t.Fatalf("%q became %q, then %q, %v", d, d.URI(), back, err)
		}
	})
}

// Clause M11.
func TestParseURI(t *testing.T) {
	for _, c := range []struct{ uri, posix, windows string }{
		{"file:///", "/", ""},
		{"FILE:///a", "/a", ""},
		{"file:/a/b", "/a/b", ""},
		{"file:/C:/x", "", `C:\x`},
		{"file://localhost/a", "/a", ""},
		{"file://LocalHost/a/", "/a", ""},
		{"file:///a b/ü", "/a b/ü", ""},
		{"file:///a%20b/%C3%BC", "/a b/ü", ""},
		{"file:///a%0Ab", "/a\nb", ""},
		{"file:///per%2520cent", "/per%20cent", ""},
		{"file:///a%5Cb", `/a\b`, ""},
		{"file:///C:/Users/x", "", `C:\Users\x`},
		{"file:///c%3A/x", "", `c:\x`},
		{"file:///C:/", "", `C:\`},
		{"file:///C:", "", `C:\`},
	} {
		for windows, expected := range map[bool]string{false: c.posix, true: c.windows} {
			got, reason := pathOf(c.uri, windows)
			require.Equal(t, expected, got, "%s, Windows %t: %s", c.uri, windows, reason)
			require.Equal(t, expected == "", reason != "", "%s, Windows %t: %s", c.uri, windows, reason)
		}
	}
}

// Clause M11.
func TestInvalidURIs(t *testing.T) {
	for uri, want := range map[string]reason{
		"":                        notFile,
		"/a":                      notFile,
		"file:a":                  notFile,
		"https://example.com/a":   notFile,
		"vscode-remote://ssh/a":   notFile,
		"not a uri %zz":           notFile,
		"file://":                 noPath,
		"file://localhost":        noPath,
		"file://server/share":     hasHost,
		"file://127.0.0.1/a":      hasHost,
		"file://C:/x":             hasHost,
		"file://localhost:80/a":   hasHost,
		"file://user@localhost/a": hasUserInfo,
		"file://user:pw@/a":       hasUserInfo,
		"file:///a?b":             hasQuery,
		"file:///a?":              hasQuery,
		"file:///a#b":             hasFragment,
		"file:///a#":              hasFragment,
		"file:///a%2Fb":           encodedSeparator,
		"file:///a%2fb":           encodedSeparator,
		"file:///a%00b":           encodedNUL,
		"file:///a\nb":            hasControl,
		"file:///a\tb":            hasControl,
		"file:///a\x7fb":          hasControl,
		"file:///a\x00b":          hasControl,
		`file:///a\b`:             hasBackslash,
		"file:///a%":              badEscape,
		"file:///a%2":             badEscape,
		"file:///a%zz":            badEscape,
		"file:///a/./b":           dotSegment,
		"file:///a/../b":          dotSegment,
		"file:///..":              dotSegment,
		"file:///a/%2e%2E/b":      dotSegment,
		"file:///a/%2e":           dotSegment,
		"file:///a/.%2e/":         dotSegment,
		"file:////a":              emptySegment,
		"file:///a//b":            emptySegment,
		"file:///a//":             emptySegment,
		"file:///a%FFb":           notUTF8,
		"file:///a\xffb":          notUTF8,
		"file:///a%ED%A0%80":      notUTF8, // a surrogate
		"file:///C:/x":            hasDrive,
		"file:///c|/x":            hasDrive,
		"file:///C%3A/x":          hasDrive,
		"file:///" + strings.Repeat("a", 100_000): tooLong,
	} {
		_, got := pathOf(uri, false)
		require.Equal(t, want, got, "%.80q", uri)
	}
	for uri, want := range map[string]reason{
		"file:///x":         noDrive,
		"file:///":          noDrive,
		"file:///C|/x":      noDrive,
		"file:///C:/a%5Cb":  encodedSeparator,
		"file:////server/x": emptySegment,
	} {
		_, got := pathOf(uri, true)
		require.Equal(t, want, got, "%q", uri)
	}
}

// Clause M11.
func TestErrorsSayWhy(t *testing.T) {
	_, err := parseURI("https://example.com/a")
	var refused *URIError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, string(notFile), refused.Reason)
	require.EqualError(t, err,
		`"https://example.com/a" is not the URI of a directory: it does not begin with "file://"`)
	_, err = parseURI("x" + strings.Repeat("ü", 1000))
	require.Less(t, len(err.Error()), 400)
}

// Clause M11.
func FuzzParseURI(f *testing.F) {
	for _, seed := range []string{
		"file:///a/b", "file://localhost/a%20b/", "file:///C:/x", "file:///%2e%2e/a", "file:///a%0Ab", "FILE:///ü", "file:////a", "file:///%F0%9F%98%80",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, uri string) {
		d, err := parseURI(uri)
		if err != nil {
			var refused *URIError
			if !errors.As(err, &refused) || refused.Reason == "" {
				t.Fatalf("%q: %v", uri, err)
			}
			return
		}
		if !filepath.IsAbs(d.String()) || !utf8.ValidString(d.String()) ||
			strings.Contains(d.String(), "\x00") {
			t.Fatalf("%q became %q", uri, d)
		}
		again, err := parseURI(d.URI())
		if err != nil || again != d {
			t.Fatalf("%q became %q, then %q, %v", uri, d, again, err)
		}
	})
}
