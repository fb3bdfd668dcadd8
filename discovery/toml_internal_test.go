package discovery

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Clause D5.
func TestTOML(t *testing.T) {
	t.Run("D5/values", func(t *testing.T) {
		for text, want := range map[string]string{
			"":                                   `{}`,
			"# only a comment":                   `{}`,
			"a = 1 # one\nb = 'x\\n' \r\nc=true": `{"a":1,"b":"x\\n","c":true}`,
			"a = -1_000.5e3\nb = 1979-05-27T07:32:00Z\nc = 0x_ff":              `{"a":-1000.5e3,"b":"1979-05-27T07:32:00Z","c":"0x_ff"}`,
			`a."b.c".d = "é\u00e9\t\"\\"`:                                      `{"a":{"b.c":{"d":"éé\t\"\\"}}}`,
			"[a.b]\nc = 1\n[a]\nd = 2\n[a.b.e]":                                `{"a":{"b":{"c":1,"e":{}},"d":2}}`,
			"[[p]]\nx = 1\n[[p]]\n[p.q]\ny = 2":                                `{"p":[{"x":1},{"q":{"y":2}}]}`,
			"a = [\n 'x', # first\n 'y',\n]\nb = { c = 1, d = [ { e = 2 } ] }": `{"a":["x","y"],"b":{"c":1,"d":[{"e":2}]}}`,
			"a = \"\"\"\nx\n\\\n   y \"\" z\"\"\"\"\nb = '''\\d'''":            `{"a":"x\ny \"\" z\"","b":"\\d"}`,
			"a = ''\nb = \"\"":                                                 `{"a":"","b":""}`,
		} {
			got, err := readTOML(text)
			require.NoError(t, err, text)
			encoded, err := json.Marshal(got)
			require.NoError(t, err)
			require.JSONEq(t, want, string(encoded), text)
		}
	})
	t.Run("D5/errors", func(t *testing.T) {
		for text, want := range map[string]string{
			"a = 1\nb":                        "line 2: an equals sign is missing",
			"a = 1 2":                         "line 1: there is something after the value",
			"a = 1\na = 2":                    "line 2: a is given twice",
			"a = 1\n[a]":                      "line 2: a is not a table",
			"a = 1\n[[a]]":                    "line 2: a is not a list of tables",
			"[a":                              "line 1: a bracket is missing",
			"[]":                              "line 1: a key is missing",
			"a =":                             "line 1: a value is missing",
			"a = \"x\ny\"":                    "line 1: a quotation mark is missing",
			"a = '''x":                        "line 1: a quotation mark is missing",
			"a = \"\\":                        "line 1: a quotation mark is missing",
			`a = "\q"`:                        `line 1: the escape \q is not valid`,
			`a = "\ud800"`:                    `line 1: the escape \u is not valid`,
			"a = [1 2]":                       "line 1: a comma or a closing bracket is missing",
			"a = [1":                          "line 1: a comma or a closing bracket is missing",
			"a = {b = 1, b = 2}":              "line 1: b is given twice",
			"a = " + strings.Repeat("[", 100): "line 1: the value is nested too deep",
		} {
			_, err := readTOML(text)
			require.EqualError(t, err, want, text)
		}
	})
}

func FuzzTOML(f *testing.F) {
	f.Add("[a.b]\nc = [1, \"x\"] # y\n[[d]]\ne = '''z'''")
	f.Fuzz(func(t *testing.T, text string) {
		if got, err := readTOML(text); err == nil {
			_, err := json.Marshal(got)
			require.NoError(t, err)
		}
	})
}
