package strictjson

import (
	"encoding/json"

	"github.com/go-json-experiment/json/jsontext"
)

// Prune returns the object raw without the members that shape does not have, unless they are
// misspelled, so that [Check] still reports these. It also removes the members called drop from all
// objects that shape describes. Anything that is not a valid object stays as it is.
func Prune(raw json.RawMessage, shape *Shape, drop string) json.RawMessage {
	if !IsObject(raw) || !jsontext.Value(raw).IsValid(lenient...) {
		return raw
	}
	p := pruner{drop: drop}
	p.value(raw, shape, true)
	return p.out
}

// pruner writes what is left to out.
type pruner struct {
	drop string
	out  json.RawMessage
}

// value writes a valid value of the given shape. A strict object has only members of the shape.
func (p *pruner) value(raw []byte, shape *Shape, strict bool) {
	open := jsontext.Value(raw).Kind()
	isObject := open == '{' && shape != nil && (strict || shape.Fields != nil)
	if !isObject && (open != '[' || shape.items() == nil) {
		p.out = append(p.out, raw...)
		return
	}
	p.out = append(p.out, byte(open))
	first := len(p.out)
	_ = members(raw, open, func(m member) {
		below := shape.Items
		if isObject {
			key := m.name.text()
			field, known := shape.Fields[string(key)]
			if string(key) == p.drop || strict && !known && shape.misspelled(key) == "" {
				return
			}
			below = field
		}
		if len(p.out) > first {
			p.out = append(p.out, ',')
		}
		if isObject {
			p.out = append(append(p.out, m.name...), ':')
		}
		p.value(raw[m.value:m.end], below, false)
	})
	p.out = append(p.out, byte(open)+2) // the closing bracket
}
