package access

import (
	"cmp"
	"strings"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/session/tasks"
	"github.com/acp-agent/acp-agent/internal/permission"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/workspace"
)

// Access is the access of a session's backend to files and commands.
type Access struct {
	Guarded *workspace.Workspace // the session's roots, in which the user's rules hold
	Permits *permission.Permits
	options workspace.Options
	tasks   *tasks.Group
	outside chan struct{} // holds one value while a file outside is asked about or read
}

// New returns the access to the roots of w, with the rules in p. Other files are opened with o.
func New(
	w *workspace.Workspace, p *permission.Permits, o workspace.Options, g *tasks.Group,
) *Access {
	return &Access{Guarded: p.Guard(w), Permits: p, options: o, tasks: g,
		outside: make(chan struct{}, 1)}
}

// Check returns what a request to the client does, if there are rules, and a
// *[permission.RuleError] if one is about it.
func (a *Access) Check(
	from backend.Sender, method string, params backend.Raw,
) (action permission.Action, err error) {
	rules, err := a.Permits.Restrictions()
	if from.Decided || err == nil && rules.Ask == nil && rules.Deny == nil {
		return action, nil
	}
	if action, err = a.Requested(from, method, params); err != nil {
		return action, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "%s: %v", method, err)
	}
	if action.Verb == "" && action.Files == nil { // it is about something else
		return action, nil
	}
	return action, a.Permits.Check(action)
}

// Requested returns what a request to the client does to files or runs, the zero action for others.
// The verb of a method for files that is not known is "".
func (a *Access) Requested(
	from backend.Sender, method string, params backend.Raw,
) (action permission.Action, err error) {
	if from.Made != nil {
		params = from.Made
	}
	place := permission.At(a.Guarded)
	switch method {
	case protocol.TerminalCreate:
		line, dir, err := commandOf(params)
		if err != nil {
			return action, err
		}
		dir = cmp.Or(dir, a.Guarded.Roots().Cwd().String())
		action, _ = place.Command(line, dir)
		return action, place.Carry(&action, params)
	case protocol.ReadTextFile:
		action.Verb = permission.Read
	case protocol.WriteTextFile:
		action.Verb = permission.Edit
	default:
		if !strings.HasPrefix(method, protocol.FilePrefix) {
			return action, nil
		}
	}
	path, _, err := pathMember(params, "path")
	for _, p := range spellings(path) {
		action.Files = append(action.Files, place.Access(action.Verb, p).Files...)
	}
	return action, err
}

// commandOf returns the command line of the params of terminal/create, and the folder that it runs
// in, "" if they name none. Some agents send a whole line as the command, others its words.
func commandOf(params backend.Raw) (line, dir string, err error) {
	line, _, err = pathMember(params, "command")
	if err != nil {
		return "", "", err
	}
	if dir, _, err = pathMember(params, "cwd"); err != nil {
		return "", "", err
	}
	field, err := onlyMember(params, "args")
	if err != nil || !field.Present() || field.IsNull() {
		return line, dir, err
	}
	var wrong strictjson.Violations
	for _, arg := range wrong.Texts(field) {
		line += " " + text.ShellWord(arg)
	}
	return line, dir, wrong.Err()
}
