package strictjson

import (
	"bytes"
	"encoding/json"
)

// Prune returns the object raw without the members that shape does not have, unless they are
// misspelled, so that [Check] still reports these. It also removes the members called drop from all
// objects that shape describes. Anything that is not a valid object stays as it is.
func Prune(raw json.RawMessage, shape *Shape, drop string) json.RawMessage {
	p := pruner{drop: drop}
	if !IsObject(raw) || p.object(raw, shape, shape) != nil || !p.pruned {
		return raw
	}
	return p.out
}

// pruner writes what is left to out.
type pruner struct {
	drop   string
	out    json.RawMessage
	pruned bool // whether something was left out
}

// object writes an object of the given shape. If only is not nil, it leaves out other members than
// those of only.
func (p *pruner) object(raw []byte, shape, only *Shape) error {
	p.out = append(p.out, '{')
	first := len(p.out)
	err := members(raw, '{', func(m member) {
		key := m.name.text()
		if string(key) == p.drop || !only.mayHave(key) {
			p.pruned = true
			return
		}
		p.separate(first)
		p.out = append(append(p.out, m.name...), ':')
		p.value(raw[m.value:m.end], shape.field(key))
	})
	p.out = append(p.out, '}')
	return err
}

// value writes a value of the given shape.
func (p *pruner) value(raw []byte, shape *Shape) {
	switch {
	case IsObject(raw) && shape != nil && shape.Fields != nil:
		_ = p.object(raw, shape, nil)
	case bytes.HasPrefix(raw, []byte{'['}) && shape.items() != nil:
		p.out = append(p.out, '[')
		first := len(p.out)
		_ = members(raw, '[', func(m member) {
			p.separate(first)
			p.value(raw[m.value:m.end], shape.Items)
		})
		p.out = append(p.out, ']')
	default:
		p.out = append(p.out, raw...)
	}
}

// separate writes a comma unless nothing was written since first.
func (p *pruner) separate(first int) {
	if len(p.out) > first {
		p.out = append(p.out, ',')
	}
}

// mayHave reports whether an object of the shape may have a member with this name, perhaps
// misspelled. A nil shape has all.
func (s *Shape) mayHave(key []byte) bool {
	if s == nil {
		return true
	}
	_, known := s.Fields[string(key)]
	return known || s.misspelled(key) != ""
}
