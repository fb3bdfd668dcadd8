// Package schema validates the messages of an agent with the JSON schema of ACP v1.
//
// The schema describes the params and results of each method, but not which result belongs to which
// method, and it allows unknown members everywhere. A [Conversation] therefore reads the lines of
// both sides in order. It matches responses with requests, and also checks that messages are
// JSON-RPC 2.0, that each request has one response, and that params and results have no unknown
// members. For an agent that relays the messages of another, or is one of others, it also allows
// members of the unstable schema and extension methods.
//
//	c, err := schema.Follow(false)
//	c.Client(line)
//	err = c.Agent(line)
//
// The embedded files are schema.json and schema.unstable.json of the npm package
// @agentclientprotocol/sdk, compressed and without descriptions. A test compares them;
// ACP_AGENT_UPDATE=1 rewrites them.
package schema

import (
	"compress/gzip"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"
)

// Version is the version of the npm package.
const Version = "2.4.0"

//go:embed schema.json.gz schema.unstable.json.gz
var published embed.FS

// edition is one of the published schemas.
type edition struct {
	definitions map[string]*jsonschema.Schema
	// An object is valid if its members are, each by the definition of its name.
	*jsonschema.Resolved
	// names are the definitions of what agents send, by kind and method.
	names map[string]string
}

// editions are the newest schemas, which are read once. The unstable one is only used for methods
// that the stable one does not have, such as session/fork, and for agents of others.
var editions = sync.OnceValues(func() ([]edition, error) {
	stable, err := read("schema.json.gz")
	unstable, err2 := read("schema.unstable.json.gz")
	return []edition{stable, unstable}, errors.Join(err, err2)
})

func read(file string) (edition, error) {
	compressed, err := published.Open(file)
	if err != nil {
		return edition{}, err
	}
	text, err := gzip.NewReader(compressed)
	if err != nil {
		return edition{}, err
	}
	var root jsonschema.Schema
	if err := json.NewDecoder(text).Decode(&root); err != nil {
		return edition{}, err
	}
	root.AnyOf, root.Properties = nil, map[string]*jsonschema.Schema{}
	e := edition{definitions: root.Defs, names: map[string]string{"Error ": "Error"}}
	for name, definition := range root.Defs {
		root.Properties[name] = &jsonschema.Schema{Ref: "#/$defs/" + name}
		decide(definition)
		for _, member := range definition.Properties {
			decide(member)
		}
		side, _ := definition.Extra["x-side"].(string)
		method, _ := definition.Extra["x-method"].(string)
		for _, kind := range []string{"Response", "Request", "Notification"} {
			from := map[string]bool{"client": kind != "Response", "agent": kind == "Response",
				"protocol": kind == "Notification"}
			if from[side] && strings.HasSuffix(name, kind) {
				e.names[kind+" "+method] = name
			}
		}
	}
	e.Resolved, err = root.Resolve(nil)
	return e, err
}

// decide replaces a union, whose errors would name no variant. A value must be of the variant that
// its discriminator names, or of the only one that is not null, or one of a list.
func decide(s *jsonschema.Schema) {
	if len(s.AnyOf) == 2 && s.AnyOf[1].Type == "null" {
		s.If, s.Else, s.AnyOf = s.AnyOf[1], s.AnyOf[0], nil
	}
	var values []any
	for _, variant := range s.OneOf {
		if variant.Const != nil {
			values = append(values, *variant.Const)
		}
	}
	if values != nil && len(values) == len(s.OneOf) {
		s.Enum, s.OneOf = values, nil
	}
	discriminator, _ := s.Extra["discriminator"].(map[string]any)
	member, union := discriminator["propertyName"].(string)
	if !union {
		return
	}
	named := &jsonschema.Schema{}
	for _, variant := range s.OneOf {
		named.Enum = append(named.Enum, *variant.Properties[member].Const)
		has := map[string]*jsonschema.Schema{member: {Const: variant.Properties[member].Const}}
		s.AllOf = append(s.AllOf, &jsonschema.Schema{
			If: &jsonschema.Schema{Properties: has, Required: []string{member}}, Then: variant,
		})
	}
	own := map[string]*jsonschema.Schema{member: named}
	s.AllOf = append(s.AllOf, &jsonschema.Schema{Properties: own, Required: []string{member}})
	s.OneOf = nil
}

// validate returns what is wrong with a value of the definition with this name.
func (e edition) validate(name string, value any) error {
	err := e.Validate(map[string]any{name: value})
	if err == nil {
		return nil
	}
	const step = "validating " // each schema on the way adds that, and its name
	reason := err.Error()
	return fmt.Errorf("%s: %s", name, reason[strings.LastIndex(reason, step)+len(step):])
}
