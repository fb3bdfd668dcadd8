package access

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/session/tasks"
	"github.com/acp-agent/acp-agent/internal/mcp/mcpclient"
	"github.com/acp-agent/acp-agent/internal/permission"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/workspace"
)

// requested returns what a message to the client does to files or runs, the zero action for others.
// The verb of a method for files that is not known is "".
func (a *Access) requested(m Message) (action permission.Action, err error) {
	params, place := m.Params, permission.At(a.Guarded)
	if m.From.Made != nil {
		params = m.From.Made
	}
	switch m.Method {
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
		if !strings.HasPrefix(m.Method, protocol.FilePrefix) {
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

// announced returns what a question of the agent says that it will do.
func (a *Access) announced(ctx context.Context, q Question) (action permission.Action, err error) {
	asked := q.Request
	asked.Agent = a.Agent
	err = a.inRoots(ctx, q.From, func(w *workspace.Workspace) (err error) {
		place := permission.At(w)
		place.Catalog, place.Outside = a.Catalog(), a.realOutside
		place.Server = func(name string) string { return serverConfig(a.Servers, name) }
		if w != a.Roots {
			place.Inside = func(path string) error {
				if err := a.Roots.HandOver(path); err != nil {
					return err
				}
				return w.HandOver(path)
			}
		}
		action, err = tasks.FromDisk(ctx, a.Tasks, func() (permission.Action, error) {
			return asked.Action(ctx, q.Known, place), nil
		})
		return err
	})
	switch { // in a mode for plans agents change nothing
	case action.Unclear != "":
	case !q.InTurn(): // it may have ended while the disks were read
		action.Unclear = "no turn is running"
	case strings.Contains(strings.ToLower(q.Mode), "plan") && action.Verb != permission.Read &&
		action.Verb != permission.Fetch:
		action.Unclear = "the session is in the mode " + text.Name(q.Mode)
	}
	return action, err
}

// serverConfig identifies the configuration of the only server with a name, "" if there are
// several.
func serverConfig(servers []mcpclient.Config, name string) string {
	named := slices.DeleteFunc(slices.Clone(servers), func(c mcpclient.Config) bool {
		return c.Name != name
	})
	if len(named) != 1 {
		return ""
	}
	return named[0].Identity()
}
