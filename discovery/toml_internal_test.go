package discovery

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Clause D5.
func TestReadTOML(t *testing.T) {
	t.Run("D5/values", func(t *testing.T) {
		for text, want := range map[string]string{
			"":                                   `{}`,
			"a = 1 # one\nb = 'x\\n' \r\nc=true": `{"a":1,"b":"x\\n","c":true}`,
			"[[p]]\nx = 1\n[[p]]\n[p.q]\ny = 2":  `{"p":[{"x":1},{"q":{"y":2}}]}`,
			"a = [\n 'x', # first\n 'y',\n]\nb = { c = 1, d = [ { e = 2 } ] }": `{"a":["x","y"],"b":{"c":1,"d":[{"e":2}]}}`,
			"a = '''" + strings.Repeat("[.", 100) + "'''": `{"a":"` +
				strings.Repeat("[.", 100) + `"}`,
			"a = [" + strings.Repeat("1.5, ", 100) + "]": `{"a":[` +
				strings.Repeat("1.5,", 99) + `1.5]}`,
		} {
			got, err := readTOML(text)
			require.NoError(t, err, text)
			encoded, err := json.Marshal(got)
			require.NoError(t, err)
			require.JSONEq(t, want, string(encoded), text)
		}
	})
	t.Run("D5/errors do not show values", func(t *testing.T) {
		for _, text := range []string{"a = 1\nb = s3cret", "a = 1\nb = 's3cret\n",
			"a = 1\nb = 12_s3cret"} {
			_, err := readTOML(text)
			require.EqualError(t, err, "it is not valid TOML: line 2 has an error", text)
		}
	})
}

// The documents that cost the library the most take little time.
func TestComplexTOML(t *testing.T) {
	for _, text := range []string{
		"a = " + strings.Repeat("[", maxTOML-4),
		"a = " + strings.Repeat("{a=", maxTOMLTables),
		strings.Repeat(strings.Repeat("a.", maxTOMLDots)+"a = 1\n", maxTOML/(2*maxTOMLDots+7)),
		strings.Repeat("["+strings.Repeat("a.", maxTOMLDots)+"a]\n", maxTOML/(2*maxTOMLDots+4)),
	} {
		begun := time.Now()
		_, err := readTOML(text)
		require.ErrorContains(t, err, "not valid TOML", text[:20])
		require.Less(t, time.Since(begun), 5*time.Second)
		_, err = readTOML(text + strings.Repeat("x = '{'\n", maxTOMLTables+1))
		require.ErrorContains(t, err, "it is too long", text[:20])
	}
	_, err := readTOML("a = '" + strings.Repeat(".", maxTOMLDots+1) + "'")
	require.ErrorContains(t, err, "dots in a line")
}

func FuzzTOML(f *testing.F) {
	f.Add("[a.b]\nc = [1, \"x\"] # y\n[[d]]\ne = '''z'''")
	f.Add("a = [\"\"\"x\"\"\"\", [[[]]]]\nb = {c.d.e = 1}")
	f.Fuzz(func(_ *testing.T, text string) { _, _ = readTOML(text) })
}
