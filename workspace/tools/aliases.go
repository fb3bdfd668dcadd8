package tools

import (
	"encoding/json"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// aliases has the names that tools of other agents have for arguments. Models that were trained
// with these use them even if the schema says otherwise.
var aliases = map[string][]string{
	"path": {"file_path", "filePath", "filepath", "filename", "file_name", "target_file",
		"absolute_path", "directory", "dir", "source", "src", "old_path"},
	"paths":    {"file_paths", "files"},
	"to":       {"destination", "dest", "dst", "new_path", "target"},
	"content":  {"contents", "file_text", "text"},
	"old_text": {"old_string", "oldString", "old_str", "oldText", "search"},
	"new_text": {"new_string", "newString", "new_str", "newText", "replace"},
	"edits":    {"replacements"},
	"glob":     {"pattern", "file_pattern", "include"},
	"pattern":  {"query", "regex"},
	"command":  {"cmd", "command_line"},
	"cwd":      {"workdir", "working_directory", "directory"},
	"entries":  {"plan", "todos"},
}

// knownAs returns the name that a schema has for an argument with another name, "" if it has none,
// or has an argument with that name itself.
func knownAs(s *jsonschema.Schema, name string) string {
	if s == nil || s.Properties == nil || s.Properties[name] != nil {
		return ""
	}
	for known := range s.Properties {
		if slices.Contains(aliases[known], name) {
			return known
		}
	}
	return ""
}

// Canonical returns the arguments of a call under the names that the tool has for them. Call uses
// these too; a host needs them to show a call.
func (t Tool) Canonical(arguments json.RawMessage) json.RawMessage {
	if t.schema == nil {
		return arguments
	}
	return rename(t.schema.Schema, arguments)
}

// rename returns a JSON object, or a list of objects, with the names of a schema. It returns
// anything else unchanged, and an object that has an argument under both names.
func rename(s *jsonschema.Schema, raw json.RawMessage) json.RawMessage {
	if s.Items != nil && s.Items.Properties != nil {
		var items []json.RawMessage
		if json.Unmarshal(raw, &items) != nil {
			return raw
		}
		for i := range items {
			items[i] = rename(s.Items, items[i])
		}
		return strictjson.Encode(items)
	}
	o, err := strictjson.ParseObject(raw)
	if err != nil || s.Properties == nil {
		return raw
	}
	renamed := []byte{'{'}
	for name, value := range o.All() {
		if known := knownAs(s, name); known != "" {
			if _, both := o.Get(known); both {
				return raw
			}
			name = known
		}
		if property := s.Properties[name]; property != nil && property.Items != nil {
			value = rename(property, value)
		}
		if len(renamed) > 1 {
			renamed = append(renamed, ',')
		}
		renamed = append(append(renamed, strictjson.Encode(name)...), ':')
		renamed = append(renamed, value...)
	}
	return append(renamed, '}')
}
