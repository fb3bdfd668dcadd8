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
	// Namespace is that of an MCP server. It is "" for most agents, which put it into Name.
	Namespace string
	// Schema is the JSON schema of its arguments.
	Schema json.RawMessage
}

// names are the names of tools for an order, in lower case.
var names = map[string][]string{
	"read":  {"read", "read_file", "read_files", "view"},
	"edit":  {"edit", "replace", "edit_file", "editor"},
	"write": {"write", "write_file", "create"},
	"run":   {"bash", "exec_command", "run_command", "run_commands", "run_shell_command", "shell"},
}

// shells are the names of tools for shell commands that are used if an agent has no tools for
// files.
var shells = []string{"exec_command", "shell", "run_commands"}

// command returns an order as a command line. The texts of an edit must not have special
// characters.
func (o Order) command() string {
	path := quoted(o.Path)
	switch o.Do {
	case "run":
		return o.Text
	case "read":
		return "cat " + path
	case "edit":
		return "sed -i " + quoted("s|"+o.Old+"|"+o.Text+"|") + " " + path
	}
	return "printf %s " + quoted(o.Text) + " > " + path
}

func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// carryOut returns the action for an order, given the tools of the agent.
func (r Request) carryOut(o Order) act {
	a := act{pieces: o.Pieces, pace: o.Pace, end: o.End, fault: o.Fault}
	switch o.Do {
	case "say":
		a.say = o.Text
	case "think":
		a.thought = o.Text
	case "wait":
		a.wait = true
	case "together":
		for _, each := range o.All {
			b := r.carryOut(each)
			a.thought, a.say, a.calls = a.thought+b.thought, a.say+b.say, append(a.calls,
				b.calls...)
			a.pieces, a.pace = max(a.pieces, b.pieces), max(a.pace, b.pace)
		}
	default:
		c, err := r.call(o)
		if err != nil {
			a.say = err.Error()
			break
		}
		a.calls = []call{c}
	}
	return a
}

// call returns the tool call for an order.
func (r Request) call(o Order) (call, error) {
	if o.Do == "invent" {
		return call{Tool{Name: o.Tool}, o.Arguments}, nil
	}
	called := names[o.Do]
	if o.Do == "use" {
		called = []string{strings.ToLower(o.Tool)}
	}
	at := r.tool(o.Server, called)
	if at < 0 && o.Server == "" && o.Do != "use" {
		at = r.tool("", shells)
	}
	if at < 0 {
		what := strings.Join(strings.Fields(o.Server+" "+o.Do+" "+o.Tool), " ")
		return call{}, fmt.Errorf("no tool for %q among %s", what, strings.Join(r.toolNames(), " "))
	}
	args, err := r.Tools[at].arguments(o)
	if err != nil {
		return call{}, fmt.Errorf("the tool %s: %w", r.Tools[at].Name, err)
	}
	return call{r.Tools[at], args}, nil
}

// tool returns the index of the first tool of a server, or of the agent's own, with one of the
// names; -1 if there is none.
func (r Request) tool(server string, names []string) int {
	return slices.IndexFunc(r.Tools, func(t Tool) bool {
		_, name, found := strings.Cut(t.Namespace+t.Name, server)
		if server != "" {
			name = strings.TrimLeft(name, "_-.")
		}
		return found && slices.Contains(names, strings.ToLower(name))
	})
}

func (r Request) toolNames() []string {
	var all []string
	for _, t := range r.Tools {
		all = append(all, t.Namespace+t.Name)
	}
	return all
}

// arguments returns the arguments of the tool for an order, according to its schema.
func (t Tool) arguments(o Order) (string, error) {
	if o.Arguments != "" {
		return o.Arguments, nil
	}
	var schema struct {
		Properties map[string]struct{ Type any }
		Required   []string
	}
	if len(t.Schema) > 0 { // some agents omit it if there are no arguments
		if err := json.Unmarshal(t.Schema, &schema); err != nil {
			return "", err
		}
	}
	args := map[string]any{}
	for name := range schema.Properties {
		switch plain := strings.ToLower(strings.ReplaceAll(name, "_", "")); plain {
		case "path", "filepath", "absolutepath":
			args[name] = o.Path
		case "oldstring", "oldstr", "oldtext", "before":
			args[name] = o.Old
		case "newstring", "newstr", "newtext", "after", "content", "filetext":
			args[name] = o.Text
		case "cmd", "command":
			args[name] = o.command()
		case "commands":
			args[name] = []string{o.command()}
		case "paths":
			args[name] = []string{o.Path}
		case "timeout":
			if slices.Contains(schema.Required, name) {
				args[name] = 60_000
			}
		case "files":
			args[name] = []any{map[string]string{"path": o.Path}}
		case "edits":
			if _, alternative := schema.Properties["old_text"]; !alternative {
				args[name] = []any{map[string]string{"oldText": o.Old, "newText": o.Text}}
			}
		default:
			if slices.Contains(schema.Required, name) && schema.Properties[name].Type == "string" {
				args[name] = "as ordered" // for example a reason
			}
		}
	}
	text, err := json.Marshal(args)
	return string(text), err
}
