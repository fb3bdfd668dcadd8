package discovery

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// serverFile is an MCP configuration as it is written. Members nobody knows are left alone.
type serverFile struct {
	name    string // of the member that holds the servers
	servers []namedServer
	inputs  []string
}

type namedServer struct {
	name string
	raw  json.RawMessage
}

// readServers makes an artifact of each server of a configuration file. base says where it is.
func readServers(base Artifact, text string, format Format, o Options) []Artifact {
	plain := withoutComments([]byte(text))
	if format == MCPServers && !json.Valid([]byte(text)) && json.Valid(plain) {
		base.diagnose(RuleJSONComments, "the file is JSON with comments or trailing commas; other tools will refuse it")
	}
	file, err := parseServers(plain, format)
	switch {
	case err != nil:
		base.invalid(err.Error())
		return []Artifact{base}
	case len(file.servers) == 0:
		base.invalid("its member " + file.name + " names no server")
		return []Artifact{base}
	}
	servers := file.servers[:min(len(file.servers), o.MaxArtifacts+1)]
	all := make([]Artifact, len(servers))
	given := make(map[string]bool)
	for i, s := range servers {
		a := base.clone()
		a.Name = s.name
		readServer(&a, s.raw, file.inputs)
		if given[s.name] {
			a.invalid(fmt.Sprintf("the name %q is given twice in this file; the first counts", s.name))
			a.Server = nil
		}
		given[s.name] = true
		all[i] = a
	}
	return all
}

// parseServers finds the servers, in the order of the file.
func parseServers(text []byte, format Format) (serverFile, error) {
	file := serverFile{name: "mcpServers"}
	if format == VSCodeServers {
		file.name = "servers"
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) {
			return file, fmt.Errorf("it is not a JSON object but a JSON %s", wrong.Value)
		}
		return file, fmt.Errorf("it is not JSON: %w", err)
	}
	raw, ok := members[file.name]
	if !ok {
		return file, fmt.Errorf("it has no member %s", file.name)
	}
	var inputs []struct {
		ID string `json:"id"`
	}
	if format == VSCodeServers && json.Unmarshal(members["inputs"], &inputs) == nil {
		for _, in := range inputs {
			file.inputs = append(file.inputs, in.ID)
		}
	}
	var err error
	file.servers, err = membersOf(raw)
	if err != nil {
		return file, fmt.Errorf("its member %s is not an object of servers", file.name)
	}
	return file, nil
}

// membersOf are the members of an object, in order, repeated ones too.
func membersOf(raw json.RawMessage) ([]namedServer, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return nil, fmt.Errorf("not an object")
	}
	var all []namedServer
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, err
		}
		s := namedServer{name: name.(string)}
		if err := d.Decode(&s.raw); err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// readServer reads one server.
func readServer(a *Artifact, raw json.RawMessage, inputs []string) {
	var w struct {
		Type, Command, Cwd, URL string
		Args                    []string
		Env, Headers            map[string]string
	}
	if err := json.Unmarshal(raw, &w); err != nil {
		a.invalid(memberFault(err))
		return
	}
	s := &Server{Command: w.Command, Args: w.Args, Cwd: w.Cwd, URL: Address(w.URL), Env: Secrets{w.Env}, Headers: Secrets{w.Headers}}
	if fault := s.transport(w.Type); fault != "" {
		a.invalid(fault)
		return
	}
	if w.Command != "" && w.URL != "" {
		a.diagnose(RuleServerTransport, "it has a command and a URL; it is taken for "+string(s.Transport))
	}
	for _, id := range inputs {
		if bytes.Contains(raw, []byte("${input:"+id+"}")) {
			s.Inputs = append(s.Inputs, id)
		}
	}
	slices.Sort(s.Inputs)
	if s.Inputs = slices.Compact(s.Inputs); len(s.Inputs) > 0 {
		a.diagnose(RuleServerInput, "an editor would ask a person for "+strings.Join(s.Inputs, ", "))
	}
	a.Server, a.Description = s, s.String()
}

// memberFault says which member has the wrong type, and nothing of its value.
func memberFault(err error) string {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return "its configuration cannot be read"
	}
	is, _, _ := strings.Cut(wrong.Value, " ")
	if wrong.Field == "" {
		return "its configuration is not an object but a JSON " + is
	}
	return fmt.Sprintf("its member %s cannot be a JSON %s", strings.ToLower(wrong.Field), is)
}

// transport sets the transport that the configuration names, or that follows from what it has.
func (s *Server) transport(name string) (fault string) {
	switch name {
	case "":
		s.Transport = Stdio
		if s.Command == "" {
			s.Transport = HTTP
		}
	case "stdio", "local":
		s.Transport = Stdio
	case "http", "streamable-http", "streamableHttp":
		s.Transport = HTTP
	case "sse":
		s.Transport = SSE
	default:
		return fmt.Sprintf("its type %q is not stdio, http or sse", name)
	}
	if s.Transport == Stdio && s.Command == "" {
		return "it names no command"
	}
	if s.Transport != Stdio && s.URL == "" {
		return "it has neither a command nor a url"
	}
	return ""
}

// withoutComments is JSON with comments and trailing commas as plain JSON, with blanks in their place so that
// positions stay.
func withoutComments(text []byte) []byte {
	out := bytes.Clone(text)
	comma := -1 // a comma after which nothing came yet
	for i := 0; i < len(out); {
		end := i + 1
		switch c := out[i]; {
		case c == '"':
			end = stringEnd(out, i)
			comma = -1
		case c == '/' && i+1 < len(out) && (out[i+1] == '/' || out[i+1] == '*'):
			end = blank(out, i)
		case c == ',':
			comma = i
		case (c == '}' || c == ']') && comma >= 0:
			out[comma], comma = ' ', -1
		case c != ' ' && c != '\t' && c != '\n' && c != '\r':
			comma = -1
		}
		i = end
	}
	return out
}

// stringEnd is where the string that begins at i ends.
func stringEnd(text []byte, i int) int {
	for i++; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}

// blank overwrites the comment that begins at i, and is where it ends.
func blank(text []byte, i int) int {
	end := len(text)
	if text[i+1] == '/' {
		if n := bytes.IndexByte(text[i:], '\n'); n >= 0 {
			end = i + n
		}
	} else if n := bytes.Index(text[i+2:], []byte("*/")); n >= 0 {
		end = i + 2 + n + 2
	}
	for j := i; j < end; j++ {
		if text[j] != '\n' {
			text[j] = ' '
		}
	}
	return end
}
