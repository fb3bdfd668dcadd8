package strictjson_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/acp-agent/acp-agent/internal/strictjson"
)

// A parsed object has the fields, paths and violations of ParseObject and Check.
func TestParse(t *testing.T) {
	names := &strictjson.Shape{Fields: map[string]*strictjson.Shape{"a": nil, "b": nil}}
	shape := &strictjson.Shape{Fields: map[string]*strictjson.Shape{"id": nil, "list": {Items: names}, "one": names}}
	for _, raw := range []string{
		``, `null`, `{}`, ` { } `,
		`{"id":"x","list":[ {"a":1,"B":2} , 7,[{}], {"b":[1]}],"one":{"a":{"x":1,"x":2}}}`,
		`{"list":{"a":1},"one":[1,{"a":2}],"list":[],"ID":1, "_meta":{"k":1,"k":2}}`,
	} {
		o, wrong, err := strictjson.Parse(json.RawMessage(raw), shape)
		require.NoError(t, err)
		require.Equal(t, strictjson.Check(json.RawMessage(raw), shape), wrong, raw)
		plain := object(t, raw)
		require.Equal(t, describe(plain), describe(o), raw)
	}
	for _, raw := range []string{`[]`, `1`, `{`, `{}}`, `{"a":}`, `{"list":[}`} {
		_, _, err := strictjson.Parse(json.RawMessage(raw), shape)
		_, plain := strictjson.ParseObject(json.RawMessage(raw))
		require.Equal(t, plain.Error(), err.Error(), raw)
	}
}

// describe writes an object with all objects and arrays in it, by path.
func describe(o strictjson.Object) string {
	var b strings.Builder
	for name := range o.All() {
		describeField(&b, o.Field(name).Masked())
	}
	return b.String()
}

func describeField(b *strings.Builder, f strictjson.Field) {
	b.WriteString(f.Refuse(strictjson.Type).String() + "=" + string(f.Raw()) + "\n")
	if o, wrong := f.Object(); wrong == nil {
		for name := range o.All() {
			describeField(b, o.Field(name))
		}
	}
	items, _ := f.Items()
	for _, item := range items {
		describeField(b, item)
	}
}

func TestWithout(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b strings.Builder
		space := rapid.SampledFrom([]string{"", " ", "\n"})
		b.WriteString(space.Draw(t, "before") + "{" + space.Draw(t, "in"))
		for i, name := range rapid.SliceOfDistinct(rapid.SampledFrom([]string{"id", "a", "b,", "c"}), rapid.ID[string]).Draw(t, "names") {
			if i > 0 {
				b.WriteString("," + space.Draw(t, "space"))
			}
			b.WriteString(`"` + name + `":` + space.Draw(t, "space") + `"{,` + name + `"` + space.Draw(t, "space"))
		}
		b.WriteString("}")
		raw := json.RawMessage(b.String())
		_, rest, err := strictjson.Take(raw, "id")
		require.NoError(t, err)
		o, _, err := strictjson.Parse(raw, nil)
		require.NoError(t, err)
		require.Equal(t, string(rest), string(o.Without("id")))
	})
}
