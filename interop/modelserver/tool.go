package modelserver

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Tool is a tool that an agent offers.
type Tool struct {
	Name string
	// Schema is the JSON schema of its arguments.
	Schema json.RawMessage
}

// names are what agents call the tool for an order, in lower case.
var names = map[string][]string{
	"read":  {"read", "read_file"},
	"edit":  {"edit", "replace", "edit_file"},
	"write": {"write", "write_file"},
}

// shells are the tools of an agent that has none for files, but one for commands.
var shells = []string{"exec_command", "shell"}

// command is an order as a command line. An edit is of plain words.
func (o Order) command() string {
	path := quoted(o.Path)
	switch o.Do {
	case "read":
		return "cat " + path
	case "edit":
		return "sed -i " + quoted("s|"+o.Old+"|"+o.Text+"|") + " " + path
	}
	return "printf %s " + quoted(o.Text) + " > " + path
}

func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// carryOut is an order in terms of the tools on offer.
func (r Request) carryOut(o Order) act {
	switch o.Do {
	case "say":
		return act{say: o.Text}
	case "wait":
		return act{wait: true}
	}
	at := r.tool(o.Server, names[o.Do])
	if at < 0 && o.Server == "" {
		at = r.tool("", shells)
	}
	if at < 0 {
		return act{say: fmt.Sprintf("no tool on offer is for %q: %s", strings.TrimSpace(o.Server+" "+o.Do), strings.Join(r.toolNames(), " "))}
	}
	args, err := r.Tools[at].arguments(o)
	if err != nil {
		return act{say: fmt.Sprintf("the tool %s: %v", r.Tools[at].Name, err)}
	}
	return act{tool: r.Tools[at].Name, args: args}
}

// tool is the place of the first tool of a server, or of the agent's own, with one of some names; -1 if there is none.
func (r Request) tool(server string, names []string) int {
	return slices.IndexFunc(r.Tools, func(t Tool) bool {
		_, name, found := strings.Cut(t.Name, server)
		if server != "" {
			name = strings.TrimLeft(name, "_-.")
		} else {
			name = t.Name
		}
		return found && slices.Contains(names, strings.ToLower(name))
	})
}

func (r Request) toolNames() []string {
	var all []string
	for _, t := range r.Tools {
		all = append(all, t.Name)
	}
	return all
}

// arguments are an order as the tool's arguments, by the names that its schema has for them.
func (t Tool) arguments(o Order) (json.RawMessage, error) {
	var schema struct {
		Properties map[string]struct{ Type any }
		Required   []string
	}
	if err := json.Unmarshal(t.Schema, &schema); err != nil {
		return nil, err
	}
	args := map[string]any{}
	for name := range schema.Properties {
		switch plain := strings.ToLower(strings.ReplaceAll(name, "_", "")); plain {
		case "path", "filepath", "absolutepath":
			args[name] = o.Path
		case "oldstring", "oldtext":
			args[name] = o.Old
		case "newstring", "newtext", "content":
			args[name] = o.Text
		case "cmd", "command":
			args[name] = o.command()
		case "edits":
			args[name] = []any{map[string]string{"oldText": o.Old, "newText": o.Text}}
		default:
			if slices.Contains(schema.Required, name) && schema.Properties[name].Type == "string" {
				args[name] = "as ordered" // a reason, or the like
			}
		}
	}
	return json.Marshal(args)
}
