package mcproots_test

import (
	"errors"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/acp-agent/acp-agent/internal/mcproots"
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

func TestM11_ThereAndBack(t *testing.T) {
	for _, name := range []string{
		"plain", "with space", "per%cent", "per%20cent", "%2F", "%00", "a#b", "a?b", "#", "?", "%", "ü", "u\u0308", "日本語", "😀",
		"a&b=c;d", "[x]", "{x}", "(x)!'*~", "semi;colon", "a+b", "a@b", "a:b", "$HOME", "~", "...", "..a", "-rf", ".hidden", "tail.",
	} {
		for _, place := range []string{"/" + name, "/srv/" + name, "/srv/" + name + "/below"} {
			d := dir(t, path(place))
			back, err := mcproots.ParseURI(d.URI())
			require.NoError(t, err, place)
			require.Equal(t, d, back)
		}
	}
	if runtime.GOOS != "windows" {
		for _, name := range []string{"line\nbreak", "tab\there", `back\slash`, "a|b", "\x7f", `"quoted"`, "a<b>c"} {
			d := dir(t, "/srv/"+name)
			back, err := mcproots.ParseURI(d.URI())
			require.NoError(t, err, name)
			require.Equal(t, d, back)
		}
	}
}

func TestM11_ThereAndBackForAnyName(t *testing.T) {
	names := rapid.SliceOfN(rapid.StringMatching(`[^/\\\x00:|]{1,12}`), 1, 6)
	rapid.Check(t, func(t *rapid.T) {
		parts := names.Draw(t, "names")
		for _, p := range parts {
			if p == "." || p == ".." {
				t.Skip("no name")
			}
		}
		d := dir(t, path("/"+strings.Join(parts, "/")))
		back, err := mcproots.ParseURI(d.URI())
		if err != nil || back != d {
			t.Fatalf("%q became %q, then %q, %v", d, d.URI(), back, err)
		}
	})
}

func TestM11_Read(t *testing.T) {
	for _, c := range []struct{ uri, posix, windows string }{
		{"file:///", "/", ""},
		{"FILE:///a", "/a", ""},
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
		for system, expected := range map[string]string{"posix": c.posix, "windows": c.windows} {
			got, reason := mcproots.PathOn(c.uri, system)
			require.Equal(t, expected, got, "%s on %s: %s", c.uri, system, reason)
			require.Equal(t, expected == "", reason != "", "%s on %s: %s", c.uri, system, reason)
		}
	}
}

func TestM11_Refused(t *testing.T) {
	for uri, reason := range map[string]mcproots.Reason{
		"":                        mcproots.NotFile,
		"/a":                      mcproots.NotFile,
		"file:/a":                 mcproots.NotFile,
		"https://example.com/a":   mcproots.NotFile,
		"vscode-remote://ssh/a":   mcproots.NotFile,
		"not a uri %zz":           mcproots.NotFile,
		"file://":                 mcproots.NoPath,
		"file://localhost":        mcproots.NoPath,
		"file://server/share":     mcproots.Host,
		"file://127.0.0.1/a":      mcproots.Host,
		"file://C:/x":             mcproots.Host,
		"file://localhost:80/a":   mcproots.Host,
		"file://user@localhost/a": mcproots.UserInfo,
		"file://user:pw@/a":       mcproots.UserInfo,
		"file:///a?b":             mcproots.Query,
		"file:///a?":              mcproots.Query,
		"file:///a#b":             mcproots.Fragment,
		"file:///a#":              mcproots.Fragment,
		"file:///a%2Fb":           mcproots.Separator,
		"file:///a%2fb":           mcproots.Separator,
		"file:///a%00b":           mcproots.NUL,
		"file:///a\nb":            mcproots.Control,
		"file:///a\tb":            mcproots.Control,
		"file:///a\x7fb":          mcproots.Control,
		"file:///a\x00b":          mcproots.Control,
		`file:///a\b`:             mcproots.Backslash,
		"file:///a%":              mcproots.Escape,
		"file:///a%2":             mcproots.Escape,
		"file:///a%zz":            mcproots.Escape,
		"file:///a/./b":           mcproots.DotSegment,
		"file:///a/../b":          mcproots.DotSegment,
		"file:///..":              mcproots.DotSegment,
		"file:///a/%2e%2E/b":      mcproots.DotSegment,
		"file:///a/%2e":           mcproots.DotSegment,
		"file:///a/.%2e/":         mcproots.DotSegment,
		"file:////a":              mcproots.EmptyName,
		"file:///a//b":            mcproots.EmptyName,
		"file:///a//":             mcproots.EmptyName,
		"file:///a%FFb":           mcproots.Encoding,
		"file:///a\xffb":          mcproots.Encoding,
		"file:///a%ED%A0%80":      mcproots.Encoding, // a surrogate
		"file:///C:/x":            mcproots.DriveLetter,
		"file:///c|/x":            mcproots.DriveLetter,
		"file:///C%3A/x":          mcproots.DriveLetter,
		"file:///" + strings.Repeat("a", 100_000): mcproots.TooLong,
	} {
		_, got := mcproots.PathOn(uri, "posix")
		require.Equal(t, reason, got, "%.80q", uri)
	}
	for uri, reason := range map[string]mcproots.Reason{
		"file:///x":         mcproots.NoDrive,
		"file:///":          mcproots.NoDrive,
		"file:///C|/x":      mcproots.NoDrive,
		"file:///C:/a%5Cb":  mcproots.Separator,
		"file:////server/x": mcproots.EmptyName,
	} {
		_, got := mcproots.PathOn(uri, "windows")
		require.Equal(t, reason, got, "%q", uri)
	}
}

func TestM11_RefusalsSayWhy(t *testing.T) {
	_, err := mcproots.ParseURI("https://example.com/a")
	var refused *mcproots.URIError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, mcproots.NotFile, refused.Reason)
	require.EqualError(t, err, `"https://example.com/a" is not the URI of a directory: it does not begin with "file://"`)
	_, err = mcproots.ParseURI("x" + strings.Repeat("ü", 1000))
	require.Less(t, len(err.Error()), 400)
}

func FuzzM11_ParseURI(f *testing.F) {
	for _, seed := range []string{
		"file:///a/b", "file://localhost/a%20b/", "file:///C:/x", "file:///%2e%2e/a", "file:///a%0Ab", "FILE:///ü", "file:////a", "file:///%F0%9F%98%80",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, uri string) {
		d, err := mcproots.ParseURI(uri)
		if err != nil {
			var refused *mcproots.URIError
			if !errors.As(err, &refused) || refused.Reason == "" {
				t.Fatalf("%q: %v", uri, err)
			}
			return
		}
		if !filepath.IsAbs(d.String()) || !utf8.ValidString(d.String()) || strings.Contains(d.String(), "\x00") {
			t.Fatalf("%q became %q", uri, d)
		}
		again, err := mcproots.ParseURI(d.URI())
		if err != nil || again != d {
			t.Fatalf("%q became %q, then %q, %v", uri, d, again, err)
		}
	})
}
