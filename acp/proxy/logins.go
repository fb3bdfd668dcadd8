package proxy

import (
	"encoding/json"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// confineLogins returns an agent's answer to initialize for the client. To sign in, the client runs
// what the answer says in a terminal: our own command, with arguments and an environment of the
// agent, or any command of the older _meta.terminal-auth. For an agent in the sandbox, the
// arguments cannot be flags of our own, and there is neither an environment nor another command.
func (p *proxy) confineLogins(initialize backend.Raw) backend.Raw {
	var methods []backend.Raw
	if !p.isRestricted() ||
		json.Unmarshal(strictjson.Find(initialize, "authMethods"), &methods) != nil {
		return initialize
	}
	for i, method := range methods {
		if !strictjson.IsObject(method) {
			continue
		}
		var login struct{ Args []string }
		if json.Unmarshal(method, &login) == nil && len(login.Args) > 0 {
			args := append(append([]string{}, p.options.LoginArgs...), login.Args...)
			method = strictjson.Set(method, "args", backend.Encode(args))
		}
		if len(strictjson.Find(method, "env")) > 0 {
			method = strictjson.Set(method, "env", backend.Raw(`{}`))
		}
		if path := []string{"_meta", "terminal-auth"}; len(strictjson.Find(method, path...)) > 0 {
			method = strictjson.SetAt(method, backend.Raw(`null`), path...)
		}
		methods[i] = method
	}
	return strictjson.Set(initialize, "authMethods", backend.Encode(methods))
}
