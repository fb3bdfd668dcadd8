package strictjson

import "encoding/json"

// Prune returns the object raw without the members that shape does not have, unless they are
// misspelled, so that [Check] still reports these. It also removes the members called drop from all
// objects that shape describes. Anything that is not a valid object stays as it is.
func Prune(raw json.RawMessage, shape *Shape, drop string) json.RawMessage {
	if !IsObject(raw) {
		return raw
	}
	p := pruner{drop: drop, scanner: newScanner(raw)}
	defer p.release()
	if p.object(shape, shape) != nil || !p.found { // copies only what has to change
		return raw
	}
	p.reset(raw)
	p.out = make(json.RawMessage, 0, len(raw))
	if p.object(shape, shape) != nil {
		return raw
	}
	return p.out
}

// pruner copies what is left to out, unless that is nil.
type pruner struct {
	scanner
	drop  string
	out   json.RawMessage
	found bool // something to remove
}

func (p *pruner) write(text ...byte) {
	if p.out != nil {
		p.out = append(p.out, text...)
	}
}

// object reads an object of the given shape. If only is not nil, other members than those of only
// are removed.
func (p *pruner) object(shape, only *Shape) error {
	if err := p.delim(); err != nil {
		return err
	}
	p.write('{')
	for kept := 0; p.dec.PeekKind() != '}'; {
		start, end, err := p.scanner.value()
		if err != nil {
			return err
		}
		quoted := name(p.raw[start:end])
		key := quoted.text()
		if string(key) == p.drop || !only.mayHave(key) {
			p.found = true
			if err := p.dec.SkipValue(); err != nil {
				return err
			}
			continue
		}
		if kept > 0 {
			p.write(',')
		}
		kept++
		p.write(quoted...)
		p.write(':')
		if err := p.value(shape.field(key)); err != nil {
			return err
		}
	}
	p.write('}')
	return p.delim()
}

func (p *pruner) value(shape *Shape) error {
	switch kind := p.dec.PeekKind(); {
	case kind == '{' && shape != nil && shape.Fields != nil:
		return p.object(shape, nil)
	case kind == '[' && shape.items() != nil:
		return p.array(shape.Items)
	}
	start, end, err := p.scanner.value()
	p.write(p.raw[start:end]...)
	return err
}

func (p *pruner) array(item *Shape) error {
	if err := p.delim(); err != nil {
		return err
	}
	p.write('[')
	for i := 0; p.dec.PeekKind() != ']'; i++ {
		if i > 0 {
			p.write(',')
		}
		if err := p.value(item); err != nil {
			return err
		}
	}
	p.write(']')
	return p.delim()
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
