package strictjson

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPrune(t *testing.T) {
	inner := &Shape{Fields: map[string]*Shape{"text": nil, "_meta": nil}}
	shape := &Shape{Fields: map[string]*Shape{"id": nil, "_meta": nil, "in": inner,
		"list": {Items: inner}, "texts": {Items: nil}}}
	for raw, want := range map[string]string{
		`{}`:                                  `{}`,
		` { "id" : 1 } `:                      `{"id":1}`,
		`{"_meta":{}}`:                        `{}`,
		`{"id":1,"_meta":1,"x":2}`:            `{"id":1}`,
		`{"_\u006deta":1, "id": 1}`:           `{"id":1}`,
		`{"_Meta":1,"ID":2,"other":3}`:        `{"_Meta":1,"ID":2}`,
		`{"id":{"_meta":1,"x":[]},"_meta":1}`: `{"id":{"_meta":1,"x":[]}}`,
		`{"in":{"_meta":1,"x":2,"text":"t"}}`: `{"in":{"x":2,"text":"t"}}`,
		`{"list":[{"_meta":1},{"text":""},3,[{"_meta":4}]]}`: `{"list":[{},{"text":""},3,[{"_meta":4}]]}`,
		`{"texts":["_meta"],"_meta":1,"id":1,"id":2}`:        `{"texts":["_meta"],"id":1,"id":2}`,
		`["_meta"]`: `["_meta"]`,
		`{"_meta":`: `{"_meta":`, `{"in":`: `{"in":`, `{"list":[`: `{"list":[`,
		`null`: `null`, ``: ``,
	} {
		require.Equal(t, want, string(Prune(json.RawMessage(raw), shape, "_meta")))
	}
}

// What it costs grows with the object, not with its square.
func TestPruneOfManyMembersAllocatesLittle(t *testing.T) {
	var raw strings.Builder
	raw.WriteString(`{"id":1`)
	for i := range MaxItems {
		fmt.Fprintf(&raw, `,"x%d":""`, i)
	}
	raw.WriteString(`}`)
	shape := &Shape{Fields: map[string]*Shape{"id": nil}}
	allocated := testing.Benchmark(func(b *testing.B) {
		for b.Loop() {
			Prune(json.RawMessage(raw.String()), shape, "_meta")
		}
	}).AllocedBytesPerOp()
	require.Less(t, allocated, int64(4*raw.Len()))
	require.JSONEq(t, `{"id":1}`, string(Prune(json.RawMessage(raw.String()), shape, "_meta")))
}
