package strictjson_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

func TestTake(t *testing.T) {
	for _, c := range []struct{ raw, value, rest string }{
		{``, ``, `{}`},
		{`null`, ``, `{}`},
		{`{}`, ``, `{}`},
		{` { "a" : 1 } `, ``, ` { "a" : 1 } `},
		{`{"id":1}`, `1`, `{}`},
		{` { "id" : 1 } `, `1`, ` {  } `},
		{`{"id":"x","a":1e0 ,"b":"\u0061"}`, `"x"`, `{"a":1e0 ,"b":"\u0061"}`},
		{`{ "a":1e0, "id" : "x" , "b":2}`, `"x"`, `{ "a":1e0 , "b":2}`},
		{`{"a":1e0 , "id":"x" }`, `"x"`, `{"a":1e0 }`},
		{`{"a":",","id":[1,{"id":2}],"b":","}`, `[1,{"id":2}]`, `{"a":",","b":","}`},
		{`{"a":{"id":1}}`, ``, `{"a":{"id":1}}`},
		{`{"\u0069d":1,"a":2}`, `1`, `{"a":2}`},
		{`{"id":1,"a": 2,"\u0069d":3,"b":4, "id":5}`, `5`, `{"a": 2,"b":4}`},
		{`{"id":1,"id":2}`, `2`, `{}`},
	} {
		value, rest, err := strictjson.Take(json.RawMessage(c.raw), "id")
		require.NoError(t, err, c.raw)
		require.Equal(t, c.value, string(value), c.raw)
		require.Equal(t, c.rest, string(rest), c.raw)
		if c.raw != "" && c.raw != "null" {
			require.Equal(t, c.rest, string(object(t, c.raw).Without("id")), c.raw)
		}
	}
}

func TestSet(t *testing.T) {
	for _, c := range []struct{ raw, want string }{
		{``, `{"id":"n"}`},
		{`null`, `{"id":"n"}`},
		{`{}`, `{"id":"n"}`},
		{` { } `, ` {"id":"n" } `},
		{`{"a":1e0 , "b":2}`, `{"id":"n","a":1e0 , "b":2}`},
		{`{ "a":1e0, "id" : {} , "b":2}`, `{ "a":1e0, "id" : "n" , "b":2}`},
		{`{"\u0069d":1}`, `{"\u0069d":"n"}`},
		{`{"id":1,"a": 2,"id":3}`, `{"id":"n","a": 2}`},
		{`{"id":1,"id":3}`, `{"id":"n"}`},
		{`"x"`, `{"id":"n"}`},
		{`{"id":1,"id":2]`, `{"id":"n"}`},
	} {
		got := strictjson.Set(json.RawMessage(c.raw), "id", json.RawMessage(`"n"`))
		require.Equal(t, c.want, string(got), c.raw)
	}
	require.Equal(t, `{"a\"\n":1}`, string(strictjson.Set(nil, "a\"\n", json.RawMessage(`1`))))
}

func TestTake_notObject(t *testing.T) {
	_, _, err := strictjson.Take(json.RawMessage(`[1]`), "id")
	require.ErrorIs(t, err, strictjson.ErrNotObject)
	_, _, err = strictjson.Take(json.RawMessage(`{"id":1`), "id")
	require.Error(t, err)
}

// FuzzStrict compares the package with encoding/json.
func FuzzStrict(f *testing.F) {
	for _, seed := range []string{``, `null`, `{"id":1}`, `{"id":1,"a":{"id":[2]},"id":null}`,
		` { "a" : "\ud800" , "\u0069d" : "x" } `,
		`[1,2]`, `{"a":1,"A":2,"a":3}`, `{"dirs":["/a",null]}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		strictjson.Check(raw, lifecycle)
		o, err := strictjson.ParseObject(raw)
		value, rest, takeErr := strictjson.Take(raw, "id")
		set := strictjson.Set(raw, "id", json.RawMessage(`"new"`))
		require.Equal(t, err == nil, takeErr == nil)
		if err != nil {
			return
		}
		want := map[string]json.RawMessage{}
		if len(raw) > 0 {
			if strings.Contains(string(raw), `\u`) || !utf8.Valid(raw) {
				return // encoding/json and jsontext may differ on surrogates in names, and on bytes
			}
			require.NoError(t, json.Unmarshal(raw, &want))
		}
		if want == nil {
			want = map[string]json.RawMessage{}
		}
		got, _ := o.Get("id")
		require.Equal(t, string(want["id"]), string(got))
		require.Equal(t, string(want["id"]), string(value))
		new(strictjson.Violations).Texts(o.Field("dirs"))
		_, duplicate := o.Duplicate()
		require.Equal(t, o.Len() != len(want), duplicate)

		delete(want, "id")
		requireMembers(t, want, rest)
		want["id"] = json.RawMessage(`"new"`)
		requireMembers(t, want, set)
	})
}

func requireMembers(t *testing.T, want map[string]json.RawMessage, raw json.RawMessage) {
	t.Helper()
	var got map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(raw, &got), "%s", raw)
	require.Equal(t, want, got, "%s", raw)
}

// BenchmarkUpdates does to 20,000 updates of 4 KB each what passing one on needs.
func BenchmarkUpdates(b *testing.B) {
	text := strings.Repeat(`a line of code, with \"quotes\" and a tab\t\n`, 80)
	raw := json.RawMessage(`{"sessionId":"sess_0123456789abcdef","update":{"sessionUpdate":` +
		`"tool_call_update","toolCallId":"call_1","status":"in_progress","content":[{"type":` +
		`"content","content":{"type":"text","text":"` + text + `"}}],"rawOutput":{"exit":0,` +
		`"lines":[1,2,3],"file":"a/b/c.go"},"_meta":{"n":[1,2,3]}}}`)
	b.SetBytes(20_000 * int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		for range 20_000 {
			require.Empty(b, strictjson.Check(raw, nil))
			o, err := strictjson.ParseObject(raw)
			require.NoError(b, err)
			_, present := o.Get("update")
			require.True(b, present)
			_, rest, err := strictjson.Take(raw, "sessionId")
			require.NoError(b, err)
			strictjson.Set(rest, "sessionId", json.RawMessage(`"child"`))
		}
	}
}

func TestFind(t *testing.T) {
	for _, c := range []struct {
		raw, want string
		path      []string
	}{
		{`{"a":1}`, `{"a":1}`, nil},
		{` {"x":{"b":0}, "a" : {"y":[{"b":9}],"\u0062": "v" }}`, `"v"`, []string{"a", "b"}},
		{`{"a":{"b":1,"b":2},"a":3}`, `1`, []string{"a", "b"}},
		{`{"a":{"b":1}, malformed`, `1`, []string{"a", "b"}},
		{`{"a":{"b":1}}`, ``, []string{"a", "c"}},
		{`{"a":[{"b":1}]}`, ``, []string{"a", "b"}},
		{`{"x":malformed,"a":1}`, ``, []string{"a"}},
		{`{"a":malformed}`, ``, []string{"a"}},
		{`{"a":{}}`, ``, []string{"b"}},
		{``, ``, []string{"a"}},
		{`null`, ``, []string{"a"}},
	} {
		require.Equal(t, c.want, string(strictjson.Find(json.RawMessage(c.raw), c.path...)),
			"%s %v", c.raw, c.path)
	}
}

func TestOutline(t *testing.T) {
	for raw, want := range map[string]string{
		``: ``, `1`: `1`, `"{"`: `"{"`, `{}`: `{}`, `[[1],2,{"a":[]}]`: `[[],2,{}]`,
		`{"a":{"b":"]"},"c":"\"}","d":[1,[2]] , "e\\":-1}`: `{"a":{},"c":"\"}","d":[] , "e\\":-1}`,
		`{"a":"\`: `{"a":"\`, `]}{"a":1`: `]}{"a":1`,
	} {
		require.Equal(t, want, string(strictjson.Outline([]byte(raw))), raw)
	}
}

func TestSetAtAndRemove(t *testing.T) {
	const object = `{"a": 1, "b": {"c": {"d": 2.0, "e": null}}, "f": []}`
	for _, c := range []struct {
		path         []string
		set, removed string
	}{
		{[]string{"a"}, `{"a": 3, "b": {"c": {"d": 2.0, "e": null}}, "f": []}`,
			`{"b": {"c": {"d": 2.0, "e": null}}, "f": []}`},
		{[]string{"b", "c", "d"}, `{"a": 1, "b": {"c": {"d": 3, "e": null}}, "f": []}`,
			`{"a": 1, "b": {"c": {"e": null}}, "f": []}`},
		{[]string{"b", "c", "e"}, `{"a": 1, "b": {"c": {"d": 2.0, "e": 3}}, "f": []}`,
			`{"a": 1, "b": {"c": {"d": 2.0}}, "f": []}`},
		{[]string{"x", "y"}, `{"x":{"y":3},"a": 1, "b": {"c": {"d": 2.0, "e": null}}, "f": []}`, object},
		{[]string{"f", "y"}, `{"a": 1, "b": {"c": {"d": 2.0, "e": null}}, "f": {"y":3}}`, object},
	} {
		require.Equal(t, c.set, string(strictjson.SetAt([]byte(object), []byte("3"), c.path...)), c.path)
		require.Equal(t, c.removed, string(strictjson.Remove([]byte(object), c.path...)), c.path)
	}
	require.Equal(t, `[]`, string(strictjson.Remove([]byte(`[]`), "a")))
}
