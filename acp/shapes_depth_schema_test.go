package acp

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/strictjson"
)

// deep fails where the schema has members below a place, and the shape none.
func (all definitions) deep(t *testing.T, place string, s *strictjson.Shape, d *definition) {
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
func TestW2_ShapesAreAsDeepAsTheSchema(t *testing.T) {
	all := readDefinitions(t)
	for request, shape := range map[string]*strictjson.Shape{
		"InitializeRequest": initializeShape, "NewSessionRequest": newShape, "LoadSessionRequest": loadShape,
		"ResumeSessionRequest": loadShape, "PromptRequest": promptShape, "ListSessionsRequest": listShape,
		"CloseSessionRequest": sessionShape, "DeleteSessionRequest": sessionShape,
		"AuthenticateRequest": callShapes["authenticate"], "LogoutRequest": callShapes["logout"],
		"SetSessionModeRequest": callShapes["session/set_mode"], "SetSessionConfigOptionRequest": callShapes["session/set_config_option"],
	} {
		t.Run("W2/"+request, func(t *testing.T) { all.deep(t, request, shape, all[request]) })
	}
}
