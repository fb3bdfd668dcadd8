package conformance

import (
	"go/parser"
	"go/token"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFindsEveryWayToCarryAnID(t *testing.T) {
	const text = `package p
func TestA10_Omitted(t *testing.T) {}
func TestW2_W3_BadLines(t *testing.T) {}
func TestM11(t *testing.T) { t.Run("M11/again", nil); t.Run("M10/also", nil) }
func TestMain(m *testing.M) {}
func TestA10th(t *testing.T) {}
func FuzzW2_Line(f *testing.F) {}
func ExampleStore_List_a18() {}
func BenchmarkA1_Fast(b *testing.B) { b.Run("A1/x", nil) }
func helper(t *testing.T) {
	t.Run("S5/file mode", nil)
	t.Run("W4/"+name, nil)
	t.Run(fmt.Sprintf("W7/%d turns", n), nil)
	t.Run("no id", nil)
	for _, c := range []struct{ name string }{{name: "C1/dots"}} {}
	for _, c := range []struct{ name, x string }{{"C2/twin", "C3/not"}} {}
	for n, c := range map[string]int{"C4/dangling": 1} {}
}
`
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "p_test.go", text, parser.SkipObjectResolution)
	require.NoError(t, err)
	found := map[string]string{}
	for _, c := range inSource(source{path: "p_test.go", test: true, fset: fset, file: file}) {
		found[c.id+" "+c.name] = c.path
	}
	require.Equal(t, map[string]string{
		"A10 TestA10_Omitted":       "p_test.go",
		"W2 TestW2_W3_BadLines":     "p_test.go",
		"W3 TestW2_W3_BadLines":     "p_test.go",
		"M11 TestM11":               "p_test.go",
		"M10 TestM11/M10/also":      "p_test.go",
		"W2 FuzzW2_Line":            "p_test.go",
		"A18 ExampleStore_List_a18": "p_test.go",
		"S5 helper/S5/file_mode":    "p_test.go",
		"W4 helper/W4/…":            "p_test.go",
		"W7 helper/W7/…_turns":      "p_test.go",
		"C1 helper/C1/dots":         "p_test.go",
		"C2 helper/C2/twin":         "p_test.go",
		"C4 helper/C4/dangling":     "p_test.go",
	}, found)

	require.Equal(t, []claim{
		{id: "W2", name: "w2-w3-lines.txtar", path: "acp/testdata/w2-w3-lines.txtar"},
		{id: "W3", name: "w2-w3-lines.txtar", path: "acp/testdata/w2-w3-lines.txtar"},
	}, inTranscript("acp/testdata/w2-w3-lines.txtar"))
	require.Empty(t, inTranscript("acp/testdata/initialize.txtar"))
}

func TestAPageOutOfFormIsRefused(t *testing.T) {
	const good = "## A. Roots\n\n### A1\n\n> Text.\n\n- Status: proven\n- Tests: none\n"
	_, err := parse(good)
	require.NoError(t, err)
	for text, want := range map[string]string{
		"### A1\n\n- Status: proven\n- Tests: none\n":                        "no text",
		"## A. Roots\n### A1\n> Text.\n- Tests: none\n":                      "no status",
		"## A. Roots\n### A1\n> Text.\n- Status: proven\n":                   "no tests",
		"## A. Roots\n### A1\n> Text.\n- Status: open\n- Tests: none\n":      "say after a semicolon",
		"## A. Roots\n### A1\n> Text.\n- Status: proven; x\n- Tests: none\n": "nothing open",
		"## A. Roots\n### W1\n> Text.\n- Status: proven\n- Tests: none\n":    "group W",
		good + good: "twice",
	} {
		_, err := parse(text)
		require.ErrorContains(t, err, want)
	}
}

func TestRenderingReplacesOnlyWhatIsGenerated(t *testing.T) {
	const before = "# Page\n<!-- generated: summary -->\nold\n<!-- end -->\n## A. Roots\n### A1\n> Text.\n" +
		"- Status: proven\n- Tests:\n  - old\n\n### A2\n> Text.\n- Status: open; all\n- Tests: none\n\n## After\nkept\n"
	d, err := parse(before)
	require.NoError(t, err)
	got := d.render([]claim{
		{id: "A1", name: "TestA1_X", path: "acp/a_test.go"},
		{id: "A1", name: "TestA1_Y", path: "acp/a_test.go"},
		{id: "A1", name: "TestA1_Z", path: "acp/z_linux_test.go", on: []string{"Linux"}},
	})
	require.Equal(t, "# Page\n<!-- generated: summary -->\n| Group | Proven | In part | Open |\n|---|---|---|---|\n"+
		"| A. Roots | 1 | 0 | 1 |\n<!-- end -->\n## A. Roots\n### A1\n> Text.\n- Status: proven\n- Tests:\n"+
		"  - [acp/a_test.go](../acp/a_test.go): `TestA1_X`, `TestA1_Y`\n"+
		"  - [acp/z_linux_test.go](../acp/z_linux_test.go) (Linux): `TestA1_Z`\n"+
		"\n### A2\n> Text.\n- Status: open; all\n- Tests: none\n\n## After\nkept\n", got)
	again, err := parse(got)
	require.NoError(t, err)
	require.Len(t, again.clauses, 2)
}
