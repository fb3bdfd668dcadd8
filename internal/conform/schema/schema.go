// Package schema validates the messages of an agent with the JSON schema of ACP v1.
//
// The schema describes the params and results of each method, but not which result belongs to which
// method, and it allows unknown members everywhere. A [Conversation] therefore reads the lines of
// both sides in order. It matches responses with requests, and also checks that messages are
// JSON-RPC 2.0, that each request has one response, and that params and results have no unknown
// members. For an agent that relays the messages of another, [Schema.Relayed] also allows members
// of the unstable schema and extension methods. [Schema.Foreign] is for an agent of others.
//
//	s, err := schema.Newest()
//	c := s.Conversation()
//	c.Client(line)
//	err = c.Agent(line)
//
// schema.json and schema.unstable.json are those of the npm package @agentclientprotocol/sdk,
// without descriptions. A test compares them; ACP_AGENT_UPDATE=1 rewrites them.
package schema

import (
	"embed"
	"fmt"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Version is the version of the npm package.
const Version = "2.4.0"

//go:embed schema.json schema.unstable.json
var published embed.FS

// Schema describes what an agent may send. It is immutable and safe for concurrent use.
type Schema struct {
	failure       *jsonschema.Schema
	responses     map[string]shape // by method of the client's request
	requests      map[string]shape // of an agent, by method
	notifications map[string]shape // of an agent, by method
	definitions   []map[string]any // stable, unstable
}

// shape is a definition of the schema with the names of its members.
type shape struct {
	*jsonschema.Schema
	name     string
	members  map[string]bool
	unstable *shape // in the unstable schema, if the stable one has the method
}

// Newest returns the newest schema, which is compiled once. The unstable one is only used for
// methods that the stable one does not have, such as session/fork.
func Newest() (*Schema, error) { return newest() }

var newest = sync.OnceValues(func() (*Schema, error) {
	s := &Schema{
		responses: map[string]shape{}, requests: map[string]shape{},
		notifications: map[string]shape{},
	}
	for _, name := range []string{"schema.json", "schema.unstable.json"} {
		if err := s.load(name); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return s, nil
})

func (s *Schema) load(name string) error {
	file, err := published.Open(name)
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
	s.definitions = append(s.definitions, definitions)
	for name, definition := range definitions {
		table, method := s.table(name, object(definition))
		if table == nil {
			continue
		}
		compiled, err := compiler.Compile(base + "#/$defs/" + name)
		if err != nil {
			return err
		}
		found := shape{Schema: compiled, name: name, members: names(object(definition))}
		stable, known := table[method]
		if !known {
			table[method] = found
			continue
		}
		stable.unstable = &found
		table[method] = stable
	}
	if s.failure == nil {
		s.failure, err = compiler.Compile(base + "#/$defs/Error")
	}
	return err
}

// table returns the map to which a definition belongs, nil if an agent does not send it, and its
// method.
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

// names returns the members of a definition, nil for a union, which has others.
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

// withdrawn are members that only earlier drafts had, which agents still send.
var withdrawn = map[string]bool{
	"models": true, "authMethods[].vars": true, "authMethods[].link": true,
}

// check validates value and rejects unknown members. If relayed is set, a value of the unstable
// schema is valid too, and members of earlier drafts are known.
func (s shape) check(value any, relayed bool) error {
	if relayed && s.unstable != nil && s.unstable.check(value, true) == nil {
		return nil
	}
	if err := s.Validate(value); err != nil {
		return err
	}
	if s.members == nil {
		return nil
	}
	for name := range object(value) {
		if !s.members[name] && !(relayed && withdrawn[name]) {
			return fmt.Errorf("unknown member %q", name)
		}
	}
	return nil
}
