package acp

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/strictjson"
)

// published is the schema that the shapes are read off.
const published = "../testdata/node/node_modules/@agentclientprotocol/sdk/schema/v1/schema.json"

// definition is a JSON schema, as far as it names members.
type definition struct {
	Ref        string                 `json:"$ref"`
	Properties map[string]*definition `json:"properties"`
	Items      *definition            `json:"items"`
	AllOf      []*definition          `json:"allOf"`
	AnyOf      []*definition          `json:"anyOf"`
	OneOf      []*definition          `json:"oneOf"`
}

// definitions are the schema's $defs by name.
type definitions map[string]*definition

func readDefinitions(t *testing.T) definitions {
	t.Helper()
	text, err := os.ReadFile(published)
	if os.IsNotExist(err) && os.Getenv("CI") == "" {
		t.Skip("the Node packages are not installed: run npm ci in testdata/node, or make test")
	}
	require.NoError(t, err)
	var document struct {
		Definitions definitions `json:"$defs"`
	}
	require.NoError(t, json.Unmarshal(text, &document))
	return document.Definitions
}

// flatten is d with what it refers to and all of its variants joined, as a shape joins them.
func (all definitions) flatten(d *definition) *definition {
	const local = "#/$defs/"
	joined := &definition{Properties: maps.Clone(d.Properties), Items: d.Items}
	if joined.Properties == nil {
		joined.Properties = map[string]*definition{}
	}
	parts := slices.Concat(d.AllOf, d.AnyOf, d.OneOf)
	if d.Ref != "" {
		parts = append(parts, all[d.Ref[len(local):]])
	}
	for _, part := range parts {
		part = all.flatten(part)
		maps.Copy(joined.Properties, part.Properties)
		if part.Items != nil {
			joined.Items = part.Items
		}
	}
	return joined
}

// compare holds a shape against a definition, as deep as the shape goes.
func (all definitions) compare(t *testing.T, place string, s *strictjson.Shape, d *definition, ours []string) {
	t.Helper()
	d = all.flatten(d)
	if s.Items != nil {
		require.NotNil(t, d.Items, "%s is no array", place)
		all.compare(t, place+"[]", s.Items, d.Items, nil)
		return
	}
	want := slices.Sorted(maps.Keys(d.Properties))
	want = slices.Compact(slices.Sorted(slices.Values(append(want, ours...))))
	require.Equal(t, want, slices.Sorted(maps.Keys(s.Fields)), "members of %s", place)
	for name, member := range s.Fields {
		if member != nil {
			all.compare(t, place+"."+name, member, d.Properties[name], nil)
		}
	}
}

// The keys whose case is checked are those of the schema, so that none is forgotten when it grows.
func TestW2_ShapesHaveTheKeysOfTheSchema(t *testing.T) {
	all := readDefinitions(t)
	for _, c := range []struct {
		name, request string
		shape         *strictjson.Shape
		ours          []string // what the RFD adds
	}{
		{"W2/initialize", "InitializeRequest", initializeShape, nil},
		{"W2/session new", "NewSessionRequest", newShape, nil},
		{"W2/session load", "LoadSessionRequest", loadShape, nil},
		{"W2/session resume", "ResumeSessionRequest", loadShape, nil},
		{"W2/session prompt", "PromptRequest", promptShape, nil},
		{"W2/session list", "ListSessionsRequest", listShape, []string{"additionalDirectories"}},
		{"W2/session close", "CloseSessionRequest", sessionShape, nil},
		{"W2/session delete", "DeleteSessionRequest", sessionShape, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Contains(t, all, c.request)
			all.compare(t, c.request, c.shape, all[c.request], c.ours)
		})
	}
}
