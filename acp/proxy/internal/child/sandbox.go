package child

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/proxy/profiles"
	"github.com/acp-agent/acp-agent/internal/sandbox"
	"github.com/acp-agent/acp-agent/internal/sandbox/confine"
	"github.com/acp-agent/acp-agent/internal/sandbox/hosts"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// Denial is something that the sandbox has denied a child: a path or a host, and an explanation for
// the user.
type Denial struct{ Target, Explanation string }

// SandboxText describes the child's sandbox for the user.
func (c *Process) SandboxText() string { return c.sandbox.Describe() }

// settings names the section of the configuration file for the agent, in Markdown.
func (c *Process) settings() string {
	return text.Code("agents." + cmp.Or(c.program.config.Profile.Name, "NAME"))
}

// noteRefusal remembers a host to which the sandbox does not let the child connect.
func (c *Process) noteRefusal(r hosts.Refusal) {
	c.mu.Lock()
	c.refused = append(c.refused, r)
	c.mu.Unlock()
	c.program.config.Refused(c)
}

// RefusedHosts returns the hosts to which the sandbox did not let the child connect, each once.
func (c *Process) RefusedHosts() (denials []Denial) {
	c.mu.Lock()
	refused := slices.Clone(c.refused)
	c.mu.Unlock()
	for _, r := range refused {
		denials = append(denials,
			Denial{r.Target, confine.ExplainRefusal(r, "the agent", c.settings())})
	}
	return denials
}

// ExplainCall returns what the sandbox has denied in an update of a tool call, or nothing. Only a
// child with roots is restricted to those of a session.
func (c *Process) ExplainCall(update backend.Raw) Denial {
	if c.Place.Roots == nil || !sandbox.Refused(string(update)) {
		return Denial{}
	}
	var lines []string
	var call any
	_ = json.Unmarshal(update, &call) // it was read before
	strictjson.Walk("", call, func(_ string, value any) {
		if line, ok := value.(string); ok {
			lines = append(lines, line)
		}
	})
	explanation, path := confine.ExplainDenial(c.sandbox, strings.Join(lines, "\n"), "the agent",
		c.settings())
	return Denial{path, explanation}
}

// explainDenied adds to the error of a request what the sandbox has probably denied, if the error
// is about a permission. In mode strict a runtime that cannot read its own files fails in any way,
// so there it is added to the errors of every process that starts.
func (c *Process) explainDenied(err error) error {
	if err == nil || c.sandbox.Mode == backend.SandboxOff {
		return err
	}
	message := err.Error()
	refused := Rejection(err)
	ended, hasEnded := errors.AsType[*EndedError](err)
	starts := refused == nil && (c.Info.Version == 0 || hasEnded && !ended.InSession)
	switch {
	case refused != nil:
		message += "\n" + string(refused.Data)
	case hasEnded:
		message += "\n" + strings.Join(ended.Stderr, "\n")
	}
	if !sandbox.Refused(message) && !(starts && c.sandbox.Mode == backend.SandboxStrict) {
		return err
	}
	explanation := confine.ExplainFailure(c.sandbox, message, "the agent", c.settings())
	if refused != nil {
		told := *refused
		told.Message += ". " + explanation
		return &told
	}
	return fmt.Errorf("%w. %s", err, explanation)
}

// The client's terminals are not restricted, so a child in the sandbox gets them only for commands
// that restrict themselves as the child is restricted.

// Confine returns the params with which a request or notification of the child is passed on to the
// client, so that a terminal runs its command in the child's sandbox.
func (c *Process) Confine(method string, params backend.Raw) (backend.Raw, error) {
	if c.sandbox.Mode == backend.SandboxOff || !strings.HasPrefix(method, protocol.TerminalPrefix) {
		return params, nil
	}
	switch method {
	case sdk.ClientMethodTerminalOutput, sdk.ClientMethodTerminalWaitForExit,
		sdk.ClientMethodTerminalKill, sdk.ClientMethodTerminalRelease:
		return params, nil
	case protocol.TerminalCreate:
		if len(c.program.config.Sandboxer) > 0 {
			return c.confineTerminal(params)
		}
	}
	return nil, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound,
		"%s is not offered to an agent in acp-agent's sandbox: the client would run it without one",
		method)
}

// confineTerminal does that for terminal/create. Members that are not known to it are left out.
func (c *Process) confineTerminal(params backend.Raw) (backend.Raw, error) {
	object, err := strictjson.ParseObject(params)
	if err != nil {
		return nil, err
	}
	var v strictjson.Violations
	command := profiles.Command{Path: v.Text(object.Field("command")), Sandbox: c.sandbox}
	if args := object.Field("args"); args.Present() && !args.IsNull() {
		command.Args = v.Texts(args)
	}
	if env := object.Field("env"); env.Present() && !env.IsNull() {
		for _, entry := range v.Items(env) {
			if pair, ok := v.Object(entry); ok {
				command.Env = append(command.Env,
					v.Text(pair.Field("name"))+"="+v.Text(pair.Field("value")))
			}
		}
	}
	if err := v.Err(); err != nil {
		return nil, err
	}
	command, err = command.Defer(c.program.config.Sandboxer)
	if err != nil {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams,
			"the command cannot run in the agent's sandbox: %v", err)
	}
	result := backend.TerminalParams(command.Path, command.Args, command.Env)
	for _, name := range []string{"cwd", "outputByteLimit", "_meta"} {
		if value, present := object.Get(name); present {
			result[name] = value
		}
	}
	return backend.Encode(result), nil
}
