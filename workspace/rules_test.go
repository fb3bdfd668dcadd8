package workspace

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Clause A8.
func TestCleanPosix(t *testing.T) {
	for given, want := range map[string]string{
		"/":               "/",
		"//":              "/",
		"/.":              "/",
		"/./":             "/",
		"/a":              "/a",
		"/a/":             "/a",
		"/a//":            "/a",
		"/a/.":            "/a",
		"/a/./":           "/a",
		"//a///b/./c/.//": "/a/b/c",
		"/a/..":           "/a/..",
		"/a/../b/":        "/a/../b",
		"/..":             "/..",
		"/a/.../.b/c.":    "/a/.../.b/c.",
		`/a\b/`:           `/a\b`,
		"/a b/\n":         "/a b/\n",
	} {
		require.Empty(t, check(posix{}, given), given)
		require.Equal(t, want, posix{}.normalise(given), given)
	}
}

// Clause A8.
func TestCleanWindows(t *testing.T) {
	for given, want := range map[string]string{
		`C:\`:                     `C:\`,
		`c:/`:                     `c:/`,
		`C:\\.\`:                  `C:\`,
		`C:\a`:                    `C:\a`,
		`C:\a\`:                   `C:\a`,
		`C:\\a\\.\b\`:             `C:\a\b`,
		`C:/a//b/./c/`:            `C:/a/b/c`,
		`C:\a/b\./c`:              `C:\a/b/c`,
		`C:\a\..\b`:               `C:\a\..\b`,
		`\\server\share`:          `\\server\share`,
		`\\server\share\`:         `\\server\share`,
		`\\server\share\.\a\\b\`:  `\\server\share\a\b`,
		`//server/share/a/`:       `//server/share/a`,
		`\\?\C:\`:                 `\\?\C:\`,
		`\\?\C:\a\`:               `\\?\C:\a`,
		`\\?\UNC\server\share\a\`: `\\?\UNC\server\share\a`,
	} {
		require.Empty(t, check(drives{}, given), given)
		require.Equal(t, want, drives{}.normalise(given), given)
	}
}

// Clause A4.
func TestRelativeWindows(t *testing.T) {
	for _, given := range []string{
		`C:`, `C:a`, `a`, `.`, `..\a`, `\a`, `/a`, `\\`, `\\server`, `\\server\`, `\\\share\a`,
		`1:\a`, `\\?\C:`, `\\?\UNC\server`, `:\a`,
	} {
		require.Equal(t, []Reason{ReasonRelative}, check(drives{}, given), given)
	}
}

// Clause A4.
func TestRelativePosix(t *testing.T) {
	for _, given := range []string{"a", ".", "..", "../a", `C:\a`, `\\server\share`, "~", "~/a",
		" /a", "file:///a"} {
		require.Equal(t, []Reason{ReasonRelative}, check(posix{}, given), given)
	}
}

// Clause M11.
func TestPosixURI(t *testing.T) {
	for path, want := range map[string]string{
		"/":           "file:///",
		"/a b":        "file:///a%20b",
		"/100%":       "file:///100%25",
		"/c#":         "file:///c%23",
		"/why?":       "file:///why%3F",
		"/ü/日本":       "file:///%C3%BC/%E6%97%A5%E6%9C%AC",
		"/a\nb":       "file:///a%0Ab",
		"/a%2Fb":      "file:///a%252Fb",
		`/a\b`:        "file:///a%5Cb",
		"/[x]{y}|<z>": "file:///%5Bx%5D%7By%7D%7C%3Cz%3E",
		"/a:b@c;d,e":  "file:///a:b@c;d,e",
	} {
		require.Equal(t, want, posix{}.uri(path), path)
	}
}

// Clause M11.
func TestWindowsURI(t *testing.T) {
	for path, want := range map[string]string{
		`C:\`:                       "file:///C:/",
		`C:\my code\50%`:            "file:///C:/my%20code/50%25",
		`C:/a#b`:                    "file:///C:/a%23b",
		`\\server\share`:            "file://server/share",
		`\\server\share\a b`:        "file://server/share/a%20b",
		`//server/share/a`:          "file://server/share/a",
		`\\?\C:\long`:               "file:///C:/long",
		`\\?\UNC\server\share\long`: "file://server/share/long",
	} {
		require.Equal(t, want, drives{}.uri(path), path)
	}
}

// The targets are those of symbolic links, junctions and volume mount points as the standard
// library reads them.
//
// Clause C7.
func TestWindowsLinkTargets(t *testing.T) {
	for target, want := range map[string]location{
		`C:\root\d`:                {`C:\`, []string{"root", "d"}},
		`c:/root/d/`:               {`c:\`, []string{"root", "d"}},
		`\\?\C:\root\d`:            {`C:\`, []string{"root", "d"}},
		`\\server\share\d`:         {`\\server\share\`, []string{"d"}},
		`\\?\UNC\server\share\d`:   {`\\server\share\`, []string{"d"}},
		`\\?\Volume{0a1b-2c}\d`:    {`Volume{0a1b-2c}\`, []string{"d"}},
		`\\.\PhysicalDrive0\d`:     {`\\.\PhysicalDrive0\`, []string{"d"}},
		`..\d`:                     {"", []string{"..", "d"}},
		`d/e\f`:                    {"", []string{"d", "e", "f"}},
		`\root\d`:                  {"?", []string{"root", "d"}},
		`\??\C:\root`:              {"?", []string{"??", "C:", "root"}},
		`C:d`:                      {"?", []string{"d"}},
		`\\?\GLOBALROOT\Device\x\`: {`GLOBALROOT\`, []string{"Device", "x"}},
	} {
		top, names, _ := drives{}.split(target)
		require.Equal(t, want, location{top, names}, target)
	}
	for _, top := range []string{"?", `Volume{0a1b-2c}\`, `\\.\PhysicalDrive0\`,
		`\\server\share\`} {
		require.False(t, drives{}.same(top, `C:\`), top)
	}
	require.False(t, drives{}.same("?", "?"), "? equals nothing")
	require.True(t, drives{}.same(`c:\`, `C:\`))
}
