package strictjson_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

func object(t testing.TB, raw string) strictjson.Object {
	t.Helper()
	o, err := strictjson.ParseObject(json.RawMessage(raw))
	require.NoError(t, err)
	return o
}

func TestParseObject(t *testing.T) {
	for _, absent := range []string{``, `null`, ` null `} {
		o := object(t, absent)
		require.Zero(t, o.Len(), absent)
		require.False(t, o.Field("cwd").Present())
	}
	o := object(t, ` {"b": 1, "a": {"x": [ ]}, "\u0062": null} `)
	var names []string
	for name, value := range o.All() {
		names = append(names, name+"="+string(value))
	}
	require.Equal(t, []string{`b=1`, `a={"x": [ ]}`, `b=null`}, names)
	for range o.All() {
		break
	}
	value, present := o.Get("b")
	require.True(t, present)
	require.Equal(t, `null`, string(value), "the last counts")
	name, twice := o.Duplicate()
	require.True(t, twice)
	require.Equal(t, "b", name)
	_, twice = object(t, `{"a":1,"b":{"a":1,"a":1}}`).Duplicate()
	require.False(t, twice)
}

func TestParseObjectErrors(t *testing.T) {
	for _, other := range []string{`[]`, `[{}]`, `"x"`, `1`, `true`} {
		_, err := strictjson.ParseObject(json.RawMessage(other))
		require.ErrorIs(t, err, strictjson.ErrNotObject, other)
	}
	for _, bad := range []string{`{`, ` `, `{}}`, `{} {}`, `{"secret":}`, `{secret:1}`, `[1`,
		`[] []`, `{"a":1,}`, `{"a":01}`,
		"\ufeff{}", `{"a":"` + "\n" + `"}`, strings.Repeat(`[`, 20_000)} {
		_, err := strictjson.ParseObject(json.RawMessage(bad))
		require.Error(t, err, bad)
		require.NotErrorIs(t, err, strictjson.ErrNotObject, bad)
		require.NotContains(t, err.Error(), "secret")
	}
}

// Clause A4.
func TestFieldText(t *testing.T) {
	o := object(t, `{"ok":"a\u00e9\ud83d\ude00\n","empty":"","null":null,"number":12,"object":{"k":"v"},"array":["x"],
		"high":"/a\ud800","low":"\udc00/b","swapped":"\udc00\ud800","lone inside":["\ud800"]}`)
	for _, c := range []struct{ field, text, wrong string }{
		{"ok", "aé😀\n", ""},
		{"empty", "", ""},
		{"absent", "", `absent required`},
		{"null", "", `null null = null`},
		{"number", "", `number type a string = 12`},
		{"object", "", `object type a string = {"k":"v"}`},
		{"array", "", `array type a string = ["x"]`},
		{"high", "", `high encoding = "/a�"`},
		{"low", "", `low encoding = "�/b"`},
		{"swapped", "", `swapped encoding = "��"`},
		{"lone inside", "", `lone inside type a string`},
	} {
		t.Run("A4/"+c.field, func(t *testing.T) {
			text, wrong := o.Field(c.field).Text()
			require.Equal(t, c.text, text)
			require.Equal(t, c.wrong, list(wrong))
		})
	}
}

// Clause A3.
func TestTexts(t *testing.T) {
	for _, c := range []struct{ name, params, wrong string }{
		{"absent", `{}`, `dirs required`},
		{"null", `{"dirs":null}`, `dirs null = null`},
		{"object", `{"dirs":{}}`, `dirs type an array = {}`},
		{"string", `{"dirs":"/a"}`, `dirs type an array = "/a"`},
		{"number", `{"dirs":1}`, `dirs type an array = 1`},
		{"entries", `{"dirs":["/a",null,1,[],"\ud800","/b"]}`,
			`dirs#1 null = null; dirs#2 type a string = 1; dirs#3 type a string = []; dirs#4 ` +
				`encoding = "�"`},
	} {
		t.Run("A3/"+c.name, func(t *testing.T) {
			_, wrong := texts(t, c.params)
			require.Equal(t, c.wrong, list(wrong))
		})
	}
	read, wrong := texts(t, `{"dirs":["/a" , "",  "/\u0062"]}`)
	require.Empty(t, wrong)
	require.Equal(t, []string{"/a", "", "/b"}, read)
	read, wrong = texts(t, `{"dirs":[ ]}`)
	require.Empty(t, wrong)
	require.Empty(t, read)

	_, wrong = texts(t, `{"dirs":[`+strings.Repeat(`0,`, 1000)+`0]}`)
	require.Len(t, wrong, 100)
}

// texts reads the member dirs.
func texts(t *testing.T, params string) ([]string, []strictjson.Violation) {
	var v strictjson.Violations
	read := v.Texts(object(t, params).Field("dirs"))
	return read, strictjson.ViolationsOf(v.Err())
}

func TestNestedFields(t *testing.T) {
	o := object(t, `{"servers":[{"name":1},7,{"env":[{"name":"A","value":3}]}],"grid":[[1]]}`)
	items, wrong := o.Field("servers").Items()
	require.Empty(t, wrong)
	require.Len(t, items, 3)

	first, wrong := items[0].Object()
	require.Empty(t, wrong)
	_, wrong = first.Field("name").Text()
	require.Equal(t, `servers[0].name type a string = 1`, list(wrong))
	_, wrong = first.Field("command").Text()
	require.Equal(t, `servers[0].command required`, list(wrong))

	_, wrong = items[1].Object()
	require.Equal(t, `servers#1 type an object = 7`, list(wrong))
	_, wrong = items[2].Items()
	require.Equal(t, `servers#2 type an array = {"env":[{"name":"A","value":3}]}`, list(wrong))

	third, _ := items[2].Object()
	env, wrong := third.Field("env").Masked().Items()
	require.Empty(t, wrong)
	entry, _ := env[0].Object()
	_, wrong = entry.Field("value").Text()
	require.Equal(t, `servers[2].env[0].value type a string`, list(wrong), "masked: no value")

	rows, _ := o.Field("grid").Items()
	cells, _ := rows[0].Items()
	require.Equal(t, `1`, string(cells[0].Raw()))
	_, wrong = cells[0].Text()
	require.Equal(t, `grid[0]#0 type a string = 1`, list(wrong))

	require.True(t, object(t, `{"cursor":null}`).Field("cursor").IsNull())
	require.True(t, object(t, `{"cursor":null}`).Field("cursor").Present())
}

// A member takes much more memory than the few bytes that it needs in a message.
func TestObjectsHaveLimitedMembers(t *testing.T) {
	object := func(members int) json.RawMessage {
		return json.RawMessage("{" + strings.Repeat(`"a":1,`, members-1) + `"b":2}`)
	}
	_, err := strictjson.ParseObject(object(strictjson.MaxItems))
	require.NoError(t, err)
	_, err = strictjson.ParseObject(object(strictjson.MaxItems + 1))
	require.ErrorContains(t, err, "10000 members")
}
