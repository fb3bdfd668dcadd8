package strictjson

import (
	"maps"
	"slices"

	"github.com/go-json-experiment/json"
)

// Decode decodes a value that another program wrote, as [encoding/json.Unmarshal] does, except that
// names match only as they are spelled, as they do for the program that the value is for. If a name
// is given twice, the last value counts. What is not UTF-8 is replaced by U+FFFD. Decode stops with
// an error at the first value of another type, and leaves what it has decoded so far in to.
func Decode(raw []byte, to any) error { return json.Unmarshal(raw, to, lenient...) }

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
