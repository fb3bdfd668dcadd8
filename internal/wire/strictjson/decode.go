package strictjson

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Decode decodes a value that another program wrote, as [encoding/json.Unmarshal] does, except that
// names match only as they are spelled, as they do for the program that the value is for. If a name
// is given twice, the last value counts. What is not UTF-8 is replaced by U+FFFD. Decode stops with
// an error at the first value of another type, and leaves what it has decoded so far in to.
func Decode(raw []byte, to any) error { return json.Unmarshal(raw, to, lenient...) }

// WrongType describes a value of another type than the one that was expected.
type WrongType struct {
	// Field is the path of the value, such as "cwd" or "clientInfo.name", or "params" if the whole
	// value is meant.
	Field string
	// Kind is the type that it has: "string", "number", "bool", "object" or "array".
	Kind string
}

// WrongTypeIn returns the value of a request's params that an error of [Decode] is about, if the
// error names one.
func WrongTypeIn(err error) (w WrongType, ok bool) {
	semantic, ok := errors.AsType[*json.SemanticError](err)
	if !ok {
		return w, false
	}
	kind, ok := kindNames[semantic.JSONKind]
	var path []string
	for name := range semantic.JSONPointer.Tokens() {
		path = append(path, name)
	}
	if len(path) == 0 {
		path = []string{"params"}
	}
	return WrongType{Field: strings.Join(path, "."), Kind: kind}, ok
}

// kindNames are the names of the types of JSON.
var kindNames = map[jsontext.Kind]string{
	'"': "string", '0': "number", 't': "bool", 'f': "bool", '{': "object", '[': "array",
}

// Walk calls do with a decoded value and all values in it, each with the name of the member that it
// is, or is listed in. Members come in the order of their names.
func Walk(name string, value any, do func(name string, value any)) {
	do(name, value)
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			Walk(name, item, do)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			Walk(name, v[name], do)
		}
	}
}
