package strictjson

import (
	"bytes"
	"encoding/json"
)

// Take removes the member name from the object raw: it returns its value, nil if there is
// none, and the object without it. Every other member is left as the bytes that
// were sent. If name is given twice the last value counts and all are removed.
// Nothing and null read as an empty object and are returned as {}. The errors are
// those of [ParseObject].
func Take(raw json.RawMessage, name string) (value, rest json.RawMessage, err error) {
	if isAbsent(raw) {
		return nil, json.RawMessage("{}"), nil
	}
	found, err := find(raw, name)
	if err != nil {
		return nil, nil, err
	}
	if found.count == 0 {
		return nil, raw, nil
	}
	value = raw[found.last.value:found.last.end:found.last.end]
	if found.count > 1 {
		rest, err = without(raw, name)
		return value, rest, err
	}
	start, end := found.last.start, found.last.end
	switch comma := bytes.IndexByte(raw[end:], ','); {
	case found.followed:
		end += comma + 1
	case found.preceded:
		start = bytes.LastIndexByte(raw[:start], ',')
	}
	rest = make(json.RawMessage, 0, len(raw)-(end-start))
	rest = append(rest, raw[:start]...)
	return value, append(rest, raw[end:]...), nil
}

// Put sets the member name of the object raw to value, which is well-formed JSON.
// A member that is there keeps its position; a new one comes first. Every other member is left as
// the bytes that were sent. If name is given twice one is left. Nothing and
// null read as an empty object. The errors are those of [ParseObject].
func Put(raw json.RawMessage, name string, value json.RawMessage) (json.RawMessage, error) {
	if isAbsent(raw) {
		raw = json.RawMessage("{}")
	}
	found, err := find(raw, name)
	if err == nil && found.count > 1 {
		raw, err = without(raw, name)
		found = finding{total: found.total - found.count}
	}
	if err != nil {
		return nil, err
	}
	if found.count == 1 {
		at := found.last
		out := make(json.RawMessage, 0, len(raw)-(at.end-at.value)+len(value))
		out = append(out, raw[:at.value]...)
		out = append(out, value...)
		return append(out, raw[at.end:]...), nil
	}
	brace := bytes.IndexByte(raw, '{') + 1
	out := make(json.RawMessage, 0, len(raw)+len(name)+len(value)+len(`"":,`))
	out = append(out, raw[:brace]...)
	out = AppendText(out, name)
	out = append(out, ':')
	out = append(out, value...)
	if found.total > 0 {
		out = append(out, ',')
	}
	return append(out, raw[brace:]...), nil
}

// finding is what an object holds of one name.
type finding struct {
	last     member
	count    int  // how often the name is there
	total    int  // members of the object
	preceded bool // another member comes before last
	followed bool // another member comes after last
}

func find(raw []byte, name string) (finding, error) {
	var f finding
	err := members(raw, func(m member) {
		if m.name.is(name) {
			f.last, f.preceded, f.followed = m, f.total > 0, false
			f.count++
		} else {
			f.followed = true
		}
		f.total++
	})
	return f, err
}

// without rebuilds the object raw from all members but those called name.
func without(raw []byte, name string) (json.RawMessage, error) {
	out := append(make(json.RawMessage, 0, len(raw)), '{')
	err := members(raw, func(m member) {
		if m.name.is(name) {
			return
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, raw[m.start:m.end]...)
	})
	return append(out, '}'), err
}
