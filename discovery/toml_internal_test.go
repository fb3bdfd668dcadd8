package discovery

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

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

// Documents that cost the library much memory are rejected, also those that hide brackets where a
// string ends.
func TestDeepTOMLIsRejected(t *testing.T) {
	deep := strings.Repeat("[", 1<<19)
	for _, text := range []string{
		"a = " + deep,
		"a = " + strings.Repeat("{a=", 1<<18),
		strings.Repeat("a.", 1<<19) + "a = 1",
		"[" + strings.Repeat("a.", 1<<19) + "a]",
		"a = [" + strings.Repeat("{a.b.c=[\n", 1<<17),
		`a = ["", ` + deep, `a = ['x', "\"]", ` + deep, "a = '''x''' # '''\nb = " + deep,
		`a = ["""x"""", ` + deep, `a = ["""x""""", ` + deep, `a = ['''x'''', ` +
			deep, `a = ["""\"""", ` + deep,
	} {
		require.True(t, isDeepTOML(text), text[:20])
	}
}

// BenchmarkReadLargeTOML measures that the time to read a file grows with its length.
func BenchmarkReadLargeTOML(b *testing.B) {
	for _, size := range []int{1 << 17, 1 << 20} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			var text strings.Builder
			text.WriteString("[" + strings.Repeat("a.", maxTOMLDepth-1) + "a]\n")
			for i := 0; text.Len() < size; i++ {
				fmt.Fprintf(&text, "k%d = 1\n", i)
			}
			for b.Loop() {
				_, err := readTOML(text.String())
				require.NoError(b, err)
			}
		})
	}
}

func FuzzTOML(f *testing.F) {
	f.Add("[a.b]\nc = [1, \"x\"] # y\n[[d]]\ne = '''z'''")
	f.Add("a = [\"\"\"x\"\"\"\", [[[]]]]\nb = {c.d.e = 1}")
	f.Fuzz(func(t *testing.T, text string) {
		values, err := readTOML(text)
		if err == nil && depth(values) > maxTOMLDepth*(maxTOMLDepth+1) {
			t.Fatalf("%q is nested too deep", text)
		}
	})
}

// depth returns how deep tables and arrays are nested.
func depth(value any) int {
	deepest := 0
	switch v := value.(type) {
	case map[string]any:
		for _, inner := range v {
			deepest = max(deepest, 1+depth(inner))
		}
	case []any:
		for _, inner := range v {
			deepest = max(deepest, 1+depth(inner))
		}
	case []map[string]any:
		for _, inner := range v {
			deepest = max(deepest, 1+depth(inner))
		}
	}
	return deepest
}
