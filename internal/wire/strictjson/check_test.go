package strictjson_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

var lifecycle = &strictjson.Shape{Fields: map[string]*strictjson.Shape{
	"cwd":                   nil,
	"additionalDirectories": nil,
	"mcpServers": {Items: &strictjson.Shape{Fields: map[string]*strictjson.Shape{
		"name": nil,
		"env": {Items: &strictjson.Shape{Fields: map[string]*strictjson.Shape{"name": nil,
			"value": nil}}},
	}}},
}}

// Clause W2.
func TestCheck(t *testing.T) {
	for _, c := range []struct{ name, params, want string }{
		{"nothing", ``, ``},
		{"null", `null`, ``},
		{"fine", `{"cwd":"/a","mcpServers":[{"name":"x","env":[]}],"_meta":{"CWD":1,"cwd":2}}`, ``},
		{"unknown", `{"session":1,"cwd ":2,"c-wd":3}`, ``},
		{"duplicate", `{"cwd":"/a","cwd":"/a"}`, `cwd duplicate_key`},
		{"thrice", `{"a":1,"a":2,"a":3}`, `a duplicate_key; a duplicate_key`},
		{"duplicate by escape", `{"cwd":"/a","\u0063wd":"/a"}`, `cwd duplicate_key`},
		{"duplicate in an unknown place", `{"_meta":{"x":[0,{"y":1,"y":2}]}}`,
			`_meta.x[1].y duplicate_key`},
		{"duplicate of the empty name", `{"":1,"":2}`, ` duplicate_key`},
		{"lone surrogate passes", `{"x":"\ud800","\udfff":1}`, ``},
		{"array params", `[{"a":1,"a":2}]`, `[0].a duplicate_key`},
		{"case", `{"CWD":"/a"}`, `CWD wrong_case cwd`},
		{"case by escape", `{"\u0043wd":"/a"}`, `Cwd wrong_case cwd`},
		{"case besides the right one", `{"cwd":"/a","Cwd":"/b"}`, `Cwd wrong_case cwd`},
		{"case by a letter that folds", `{"mcpServer\u017f":[]}`,
			`mcpServerſ wrong_case mcpServers`},
		{"case below", `{"mcpServers":[{},{"Name":1,"env":[{"VALUE":1}]}]}`,
			`mcpServers[1].Name wrong_case name; mcpServers[1].env[0].VALUE wrong_case value`},
		{"case where the name is not known", `{"mcpServers":[{"CWD":1}],"update":{"Cwd":1}}`, ``},
		{"both at once", `{"CWD":1,"CWD":2}`,
			`CWD wrong_case cwd; CWD duplicate_key; CWD wrong_case cwd`},
		{"another kind of value at a known place", `{"mcpServers":{"Name":1}}`, ``},
	} {
		t.Run("W2/"+c.name, func(t *testing.T) {
			require.Equal(t, c.want, list(strictjson.Check(json.RawMessage(c.params), lifecycle)))
		})
	}
}

// Clause W2.
func TestCheckManyNames(t *testing.T) {
	var b strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&b, `"k%d":%d,`, i, i)
	}
	require.Empty(t, strictjson.Check(json.RawMessage(`{`+b.String()+`"last":0}`), nil))
	require.Equal(t, `k999 duplicate_key`,
		list(strictjson.Check(json.RawMessage(`{`+b.String()+`"k999":0}`), nil)))
}

func TestCheckLimits(t *testing.T) {
	many := `{` + strings.Repeat(`"a":1,`, 10_000) + `"a":1}`
	require.Len(t, strictjson.Check(json.RawMessage(many), nil), 100)

	name := strings.Repeat("é", 5000)
	deep := strings.Repeat(`{"`+name+`":`, 50) + `{"x":1,"x":1}` + strings.Repeat(`}`, 50)
	found := strictjson.Check(json.RawMessage(deep), nil)
	require.Len(t, found, 1)
	require.Less(t, len(found[0].Field), 1100)

	require.Empty(t, strictjson.Check(json.RawMessage(strings.Repeat(`[`, 100_000)), nil),
		"too deep is malformed")
}

// list writes violations as "field reason expected; …", with value where there is one.
func list(found []strictjson.Violation) string {
	var all []string
	for _, v := range found {
		s := v.Field
		if v.Index != nil {
			s += fmt.Sprintf("#%d", *v.Index)
		}
		s += " " + string(v.Reason)
		if v.Expected != "" {
			s += " " + v.Expected
		}
		if v.Value != nil {
			s += " = " + string(v.Value)
		}
		all = append(all, s)
	}
	return strings.Join(all, "; ")
}
