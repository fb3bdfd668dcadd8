package acp

import (
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/session/access"
	"github.com/acp-agent/acp-agent/internal/test/npmtest"
	"github.com/acp-agent/acp-agent/internal/test/roottest"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// The requests that the backend answers have the keys of the schema as well.
//
// Clause W2.
func TestCallShapes(t *testing.T) {
	all := readDefinitions(t)
	names := map[string]string{
		"authenticate": "AuthenticateRequest", "logout": "LogoutRequest",
		"session/set_mode":          "SetSessionModeRequest",
		"session/set_config_option": "SetSessionConfigOptionRequest",
	}
	for method, name := range names {
		t.Run("W2/"+method, func(t *testing.T) {
			require.True(t, methodOf(method).isPassed())
			all.compare(t, method, methodOf(method).shape, all[name], nil)
		})
	}
}

// published is the schema that the shapes are read off.
const published = "@agentclientprotocol/sdk/schema/v1/schema.json"

// definitions are the schema's $defs by name.
type definitions map[string]*jsonschema.Schema

func readDefinitions(t *testing.T) definitions {
	t.Helper()
	text, err := os.ReadFile(npmtest.File(t, "testdata/node", published))
	require.NoError(t, err)
	var document jsonschema.Schema
	require.NoError(t, json.Unmarshal(text, &document))
	return document.Defs
}

// flatten is d with what it refers to and all of its variants joined, as a shape joins them.
func (all definitions) flatten(d *jsonschema.Schema) *jsonschema.Schema {
	const local = "#/$defs/"
	joined := &jsonschema.Schema{Properties: maps.Clone(d.Properties), Items: d.Items}
	if joined.Properties == nil {
		joined.Properties = definitions{}
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

// compare holds a shape against a definition, as deep as the shape goes. The shape also has ours,
// by place.
func (all definitions) compare(
	t *testing.T, place string, s *strictjson.Shape, d *jsonschema.Schema, ours map[string][]string,
) {
	t.Helper()
	d = all.flatten(d)
	if s.Fields == nil {
		require.NotNil(t, d.Items, "%s is not an array", place)
		if s.Items == nil {
			return
		}
		all.compare(t, place+"[]", s.Items, d.Items, ours)
		return
	}
	want := slices.Sorted(maps.Keys(d.Properties))
	want = slices.Compact(slices.Sorted(slices.Values(append(want, ours[place]...))))
	require.Equal(t, want, slices.Sorted(maps.Keys(s.Fields)), "members of %s", place)
	for name, member := range s.Fields {
		if member != nil && d.Properties[name] != nil {
			all.compare(t, place+"."+name, member, d.Properties[name], ours)
		}
	}
}

// The keys whose case is checked are those of the schema, so that none is forgotten when it grows.
//
// Clause W2.
func TestShapes(t *testing.T) {
	all := readDefinitions(t)
	// It is stable, but not yet in the newest published schema.
	prompts := func(cause string) map[string][]string {
		return map[string][]string{cause + "SessionRequest": {protocol.SystemPrompt}}
	}
	for _, c := range []struct {
		name, request string
		shape         *strictjson.Shape
		ours          map[string][]string // what drafts add
	}{
		{"W2/initialize", "InitializeRequest", initializeShape, map[string][]string{
			"InitializeRequest.clientCapabilities":                    {"plan", "subagents"},
			"InitializeRequest.clientCapabilities.session":            {"promptSuggestions"},
			"InitializeRequest.clientCapabilities.session.compaction": {"_meta"},
			"InitializeRequest.clientCapabilities.session.notices":    {"_meta"},
		}},
		{"W2/session new", "NewSessionRequest", newShape, prompts("New")},
		{"W2/session load", "LoadSessionRequest", loadShape, prompts("Load")},
		{"W2/session resume", "ResumeSessionRequest", loadShape, prompts("Resume")},
		{"W2/session prompt", "PromptRequest", promptShape, nil},
		{"W2/session list", "ListSessionsRequest", listShape,
			map[string][]string{
				"ListSessionsRequest": {"additionalDirectories", protocol.Archived}}},
		{"W2/session close", "CloseSessionRequest", idShape, nil},
		{"W2/session delete", "DeleteSessionRequest", idShape, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Contains(t, all, c.request)
			all.compare(t, c.request, c.shape, all[c.request], c.ours)
		})
	}
}

// deep fails where the schema has members below a place, and the shape none.
func (all definitions) deep(t *testing.T, place string, s *strictjson.Shape, d *jsonschema.Schema) {
	t.Helper()
	d = all.flatten(d)
	if d.Items != nil && len(all.flatten(d.Items).Properties) > 0 {
		require.NotNil(t, s, "%s has no shape", place)
		all.deep(t, place+"[]", s.Items, d.Items)
	}
	if len(d.Properties) == 0 {
		return
	}
	require.NotNil(t, s, "%s has no shape", place)
	for name, member := range d.Properties {
		if name != "_meta" {
			require.Contains(t, s.Fields, name, place)
			all.deep(t, place+"."+name, s.Fields[name], member)
		}
	}
}

// Keys are checked as deep as the schema names them.
//
// Clause W2.
func TestShapeDepth(t *testing.T) {
	all := readDefinitions(t)
	for request, shape := range map[string]*strictjson.Shape{
		"InitializeRequest": initializeShape, "NewSessionRequest": newShape,
		"LoadSessionRequest":   loadShape,
		"ResumeSessionRequest": loadShape, "PromptRequest": promptShape,
		"ListSessionsRequest": listShape,
		"CloseSessionRequest": idShape, "DeleteSessionRequest": idShape,
		"AuthenticateRequest":           methodOf("authenticate").shape,
		"LogoutRequest":                 methodOf("logout").shape,
		"SetSessionModeRequest":         methodOf("session/set_mode").shape,
		"SetSessionConfigOptionRequest": methodOf("session/set_config_option").shape,
	} {
		t.Run("W2/"+request, func(t *testing.T) { all.deep(t, request, shape, all[request]) })
	}
}

// namesAPath is how the schema describes a member that holds a path.
var namesAPath = regexp.MustCompile(`(?i)\b(path|directory)\b`)

// Of every request by which an agent reaches files or commands of the client, every member that the
// schema calls a path is checked.
//
// Clause P4.
func TestPaths(t *testing.T) {
	w := roottest.Open(t, t.TempDir())
	outside := t.TempDir()
	var paths []string
	for name, d := range readDefinitions(t) {
		method, _ := d.Extra["x-method"].(string)
		if d.Extra["x-side"] != "client" || !strings.HasSuffix(name, "Request") ||
			!strings.HasPrefix(method, "fs/") && !strings.HasPrefix(method, "terminal/") {
			continue
		}
		for member, p := range d.Properties {
			if member == "_meta" || !namesAPath.MatchString(p.Description) {
				continue
			}
			paths = append(paths, method+" "+member)
			params, err := json.Marshal(
				map[string]string{member: outside, "command": "x", "content": ""})
			require.NoError(t, err)
			require.ErrorContains(t, access.CheckPaths(w, method, backend.Raw(params)), "outside",
				"%s of %s", member, method)
		}
	}
	slices.Sort(paths)
	require.Equal(t,
		[]string{"fs/read_text_file path", "fs/write_text_file path", "terminal/create cwd"}, paths)
}
