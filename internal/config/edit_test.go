package config

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tailscale/hujson"
	"pgregory.net/rapid"
)

func TestConfigTextKeepsTheRest(t *testing.T) {
	const added = `  "agents": {
    "goose": {
      "command": "/opt/goose"
    }
  },
  "workspaces": [
    {
      "cwd": "/a",
      "directories": [
        "/b <&>"
      ]
    }
  ]`
	for name, test := range map[string]struct{ before, after string }{
		"new": {"", "{\n  \"agent\": \"goose\",\n" + added + "\n}\n"},
		"comments": {`// mine
{
	"agent": "gemini", // today
	/* others */
	"agents": { "goose": { "args": [] } }, // one
	"workspaces": [
		{ "cwd": "/x", "directories": ["/y"] }, // first
		// none
	] // all
	// end
}
`, `// mine
{
	"agent": "goose", // today
	/* others */
	"agents": { "goose": { "args": [], "command": "/opt/goose" } }, // one
	"workspaces": [
		{ "cwd": "/x", "directories": ["/y", "/z"] }, // first
		// none
		{
			"cwd": "/a",
			"directories": [
				"/b <&>"
			]
		}
	] // all
	// end
}
`},
		"one line": {`{"logLevel": "info"}`,
			"{\"logLevel\": \"info\",\n  \"agent\": \"goose\",\n" + added + "\n}"},
		"null": {`{
  "agents": null,
  "workspaces": null // none
}`, "{\n" + added + ", // none\n  \"agent\": \"goose\"\n}"},
	} {
		t.Run(name, func(t *testing.T) {
			change := func(before string) string {
				c, err := ParseText([]byte(before))
				require.NoError(t, err)
				c.Set("goose", "agent")
				c.Set("/opt/goose", "agents", "goose", "command")
				if name == "comments" {
					c.Append("/z", "workspaces", "0", "directories")
				}
				c.Append(map[string]any{"cwd": "/a", "directories": []string{"/b <&>"}}, "workspaces")
				after, err := c.Text()
				require.NoError(t, err)
				_, err = Parse("c.json", bytes.Clone(after))
				require.NoError(t, err)
				return string(after)
			}
			require.Equal(t, test.after, change(test.before))
			require.Equal(t, byteOrderMark+test.after, change(byteOrderMark+test.before))
			if strings.Contains(test.before, "\n") {
				crlf := func(text string) string { return strings.ReplaceAll(text, "\n", "\r\n") }
				require.Equal(t, crlf(test.after), change(crlf(test.before)))
			}
		})
	}
}

// Whatever a file looks like, the changes are in it afterwards and the rest is as it was.
func TestConfigTextStaysValid(t *testing.T) {
	extra := rapid.SampledFrom([]string{"", " ", "\n", "\n  ", "// c\n", " /* c */ ", "\t// c\n\n  "})
	rapid.Check(t, func(t *rapid.T) {
		x := func() string { return extra.Draw(t, "extra") }
		comma := func() string {
			return rapid.SampledFrom([]string{"", ","}).Draw(t, "comma") + x()
		}
		before := x() + "{" + x() + `"logLevel"` + x() + ":" + x() + `"info"` + x() + "," + x() +
			`"workspaces":` + x() + "[" + x() + `{"cwd":"/x",` + x() + `"directories":[` + x() +
			`"/y"` + x() + comma() + "]" + x() + comma() + "}" + x() + comma() + "]" + x() +
			comma() + "}" + x()
		c, err := ParseText([]byte(before))
		require.NoError(t, err)
		c.Set("goose", "agent")
		c.Append("/z", "workspaces", "0", "directories")
		c.Append(map[string]any{"cwd": "/a", "directories": []string{"/b"}}, "workspaces")
		after, err := c.Text()
		require.NoError(t, err)
		standard, err := hujson.Standardize(append([]byte{}, after...))
		require.NoError(t, err, string(after))
		require.JSONEq(t, `{"logLevel":"info","agent":"goose","workspaces":[
			{"cwd":"/x","directories":["/y","/z"]},{"cwd":"/a","directories":["/b"]}]}`,
			string(standard))
		comments := func(text []byte) (n int) {
			for i := range len(text) - 1 {
				if s := string(text[i : i+2]); s == "//" || s == "/*" {
					n++
				}
			}
			return n
		}
		require.Equal(t, comments([]byte(before)), comments(after), string(after))
	})
}
