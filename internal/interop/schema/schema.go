// Package schema holds what an agent writes against the JSON schema of ACP v1 (clause W1).
//
// The schema knows the params and results of each method, but not which result belongs to
// which method, and it accepts unknown members everywhere. So a [Conversation] is shown
// the lines of both sides in order: it finds the request that a response answers, and
// checks by itself that the envelope is JSON-RPC 2.0, that a request has one answer,
// and that params and results have no members which the schema does not name. Of what another agent says
// through us, [Schema.Relayed] takes members of the unstable schema and methods of its own as well.
//
//	s, err := schema.Load("node_modules/@agentclientprotocol/sdk/schema/v1")
//	c := s.Conversation()
//	c.Client(line)
//	err = c.Agent(line)
package schema

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Schema is what an agent may write. It is immutable and safe for concurrent use.
type Schema struct {
	failure       *jsonschema.Schema
	responses     map[string]shape // by the method of the client's request
	requests      map[string]shape // that an agent sends, by method
	notifications map[string]shape
}

// shape is a definition with the names of its members.
type shape struct {
	*jsonschema.Schema
	members  map[string]bool
	unstable map[string]bool // members in the unstable schema, of a method that the stable one has
}

// Load reads schema.json and schema.unstable.json in dir. A method that the stable schema has
// is held against that, others, such as session/fork, against the unstable one.
func Load(dir string) (*Schema, error) {
	s := &Schema{responses: map[string]shape{}, requests: map[string]shape{}, notifications: map[string]shape{}}
	for _, name := range []string{"schema.json", "schema.unstable.json"} {
		if err := s.load(filepath.Join(dir, name)); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return s, nil
}

func (s *Schema) load(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	document, err := jsonschema.UnmarshalJSON(file)
	if err != nil {
		return err
	}
	const base = "schema:///acp.json"
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource(base, document); err != nil {
		return err
	}
	definitions := object(object(document)["$defs"])
	for name, definition := range definitions {
		table, method := s.table(name, object(definition))
		if table == nil {
			continue
		}
		if stable, known := table[method]; known {
			stable.unstable = names(object(definition))
			table[method] = stable
			continue
		}
		compiled, err := compiler.Compile(base + "#/$defs/" + name)
		if err != nil {
			return err
		}
		table[method] = shape{Schema: compiled, members: names(object(definition))}
	}
	if s.failure == nil {
		s.failure, err = compiler.Compile(base + "#/$defs/Error")
	}
	return err
}

// table is where a definition belongs, nil if an agent does not write it.
func (s *Schema) table(name string, definition map[string]any) (map[string]shape, string) {
	side, _ := definition["x-side"].(string)
	method, _ := definition["x-method"].(string)
	switch {
	case side == "agent" && strings.HasSuffix(name, "Response"):
		return s.responses, method
	case side == "client" && strings.HasSuffix(name, "Request"):
		return s.requests, method
	case (side == "client" || side == "protocol") && strings.HasSuffix(name, "Notification"):
		return s.notifications, method
	}
	return nil, ""
}

// names are the members of a definition, nil where it is a union and has more than it names.
func names(definition map[string]any) map[string]bool {
	if definition["anyOf"] != nil || definition["oneOf"] != nil || definition["allOf"] != nil {
		return nil
	}
	known := map[string]bool{}
	for name := range object(definition["properties"]) {
		known[name] = true
	}
	return known
}

func object(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

// check holds value against the schema and looks for members that neither it names nor, if of is another's, the
// unstable one.
func (s shape) check(value any, of words) error {
	if err := s.Validate(value); err != nil {
		return err
	}
	if s.members == nil {
		return nil
	}
	for name := range object(value) {
		if !s.members[name] && (of == ours || !s.unstable[name]) {
			return fmt.Errorf("the schema has no member %q", name)
		}
	}
	return nil
}
