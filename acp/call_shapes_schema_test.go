package acp

import "testing"

// The requests that the runtime answers have the keys of the schema as well.
func TestW2_ShapesOfCallsHaveTheKeysOfTheSchema(t *testing.T) {
	all := readDefinitions(t)
	names := map[string]string{
		"authenticate": "AuthenticateRequest", "logout": "LogoutRequest",
		"session/set_mode": "SetSessionModeRequest", "session/set_config_option": "SetSessionConfigOptionRequest",
	}
	for method, shape := range callShapes {
		t.Run("W2/"+method, func(t *testing.T) { all.compare(t, method, shape, all[names[method]], nil) })
	}
}
