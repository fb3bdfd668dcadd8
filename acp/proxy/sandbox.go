package proxy

import (
	"encoding/json"
	"fmt"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// isRestricted reports whether the agent's processes run in the sandbox.
func (p *proxy) isRestricted() bool {
	sandbox := p.options.Profile.Sandbox
	return sandbox.Mode != backend.SandboxOff && sandbox.Unprotected() == nil
}

// sandboxNotice tells the user that the agent runs without the sandbox, or what to know about it.
func (p *proxy) sandboxNotice() string {
	profile := p.options.Profile
	if err := profile.Sandbox.Unprotected(); err != nil {
		return fmt.Sprintf("The agent runs without a sandbox and can write wherever you can: "+
			"%v.\n\n", err)
	}
	if !p.isRestricted() || profile.State.SandboxHint == "" {
		return ""
	}
	return profile.State.SandboxHint + "\n\n"
}

// withholdTerminals returns the params of initialize for an agent whose commands cannot be
// restricted in the client's terminals, and what to tell the user about these terminals.
func (p *proxy) withholdTerminals(params backend.Raw) (_ backend.Raw, note string) {
	path := []string{"clientCapabilities", "terminal"}
	if !p.isRestricted() || string(strictjson.Find(params, path...)) != "true" {
		return params, ""
	}
	if len(p.options.Sandboxer) > 0 {
		return params, "; so are its commands in the editor's terminals"
	}
	return strictjson.SetAt(params, backend.Raw("false"), path...),
		"; it does not get the editor's terminals, which may be on another machine"
}

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
