package discovery

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// Transport says how to connect to a server.
type Transport string

// The transports.
const (
	Stdio Transport = "stdio"
	HTTP  Transport = "http"
	SSE   Transport = "sse"
)

// Server is the configuration of an MCP server as it was found. Variables such as ${VAR} and
// ${input:x} are not expanded.
type Server struct {
	Transport Transport `json:"transport"`
	// Command and Args start a Stdio server, in Cwd if it is not empty.
	Command string   `json:"command,omitempty"`
	Args    []string `json:"args,omitempty"`
	Cwd     string   `json:"cwd,omitempty"`
	// Env are its environment variables. EnvFile, if not empty, is a file in the roots with more
	// variables, relative to its root.
	Env     Secrets `json:"env,omitzero"`
	EnvFile string  `json:"envFile,omitempty"`
	// URL is the address of an HTTP or SSE server.
	URL Address `json:"url,omitempty"`
	// Headers are sent with each request to it.
	Headers Secrets `json:"headers,omitzero"`
	// Inputs are the ids of values that an editor would ask the user for.
	Inputs []string `json:"inputs,omitempty"`
}

// String returns the command line or the URL, without secrets.
func (s *Server) String() string {
	if s.Transport != Stdio {
		return s.URL.String()
	}
	words := append([]string{s.Command}, s.Args...)
	for i, w := range words {
		if w == "" || strings.ContainsAny(w, " \"'") || text.Printable(w) != w {
			words[i] = fmt.Sprintf("%q", w)
		}
	}
	return strings.Join(words, " ")
}

// Secrets are values by name. String, JSON and fmt show only the names. Secrets are immutable.
type Secrets struct{ values map[string]string }

// Names returns the names, sorted.
func (s Secrets) Names() []string { return slices.Sorted(maps.Keys(s.values)) }

// All yields the names and values, sorted by name.
func (s Secrets) All() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for _, name := range s.Names() {
			if !yield(name, s.values[name]) {
				return
			}
		}
	}
}

// IsZero reports whether there are none.
func (s Secrets) IsZero() bool { return len(s.values) == 0 }

// String returns the names.
func (s Secrets) String() string { return strings.Join(s.Names(), " ") }

// Format writes the names, whatever the verb.
func (s Secrets) Format(f fmt.State, _ rune) { fmt.Fprint(f, s.String()) }

// MarshalJSON encodes the names as an array.
func (s Secrets) MarshalJSON() ([]byte, error) { return json.Marshal(s.Names()) }

// Address is a URL. String, JSON and fmt leave out its secrets: the password and the values of the
// query. Convert it to a string for the whole URL.
type Address string

// String returns the URL without its secrets.
func (a Address) String() string {
	u, err := url.Parse(string(a))
	if err != nil {
		head, _, _ := strings.Cut(string(a), "?")
		if scheme, rest, ok := strings.Cut(head, "://"); ok {
			return scheme + "://" + rest[strings.LastIndexByte(rest, '@')+1:]
		}
		return head
	}
	if _, secret := u.User.Password(); secret {
		u.User = url.UserPassword(u.User.Username(), "xxxxx")
	}
	if u.RawQuery != "" {
		pairs := strings.Split(u.RawQuery, "&")
		for i, pair := range pairs {
			if key, value, ok := strings.Cut(pair, "="); ok && value != "" {
				pairs[i] = key + "=xxxxx"
			}
		}
		u.RawQuery = strings.Join(pairs, "&")
	}
	return u.String()
}

// Format writes String, whatever the verb.
func (a Address) Format(f fmt.State, _ rune) { fmt.Fprint(f, a.String()) }

// MarshalJSON encodes String.
func (a Address) MarshalJSON() ([]byte, error) { return json.Marshal(a.String()) }

// serverFile is a parsed MCP configuration file.
type serverFile struct {
	servers  []namedServer
	inputs   []string
	disabled []string // names of servers
}

type namedServer struct {
	name string
	raw  json.RawMessage
}

// readServers returns an artifact for each server in a configuration file, based on base.
func readServers(base Artifact, content string, l limits) []Artifact {
	var file serverFile
	r := base.row
	plain, err := toJSON(content, path.Ext(base.rel))
	if err == nil {
		file, err = parseServers(plain, r)
	}
	switch {
	case err != nil:
		base.invalid(err.Error())
		return []Artifact{base}
	case len(file.servers) == 0 && r.settings:
		return nil
	case len(file.servers) == 0:
		base.invalid("its member " + r.member + " is empty")
		return []Artifact{base}
	}
	file.servers = file.servers[:min(len(file.servers), l.artifacts+1)]
	return file.artifacts(base)
}

// ParseServers returns an artifact for each server in a file with the format of .mcp.json, whose
// root is not known.
func ParseServers(content []byte) ([]Artifact, error) {
	plain, err := standardJSON(content)
	if err != nil {
		return nil, err
	}
	r := row{member: "mcpServers"}
	file, err := parseServers(plain, r)
	return file.artifacts(Artifact{Kind: MCPServer, State: Active, row: r}), err
}

// artifacts returns an artifact for each server, based on base.
func (file serverFile) artifacts(base Artifact) []Artifact {
	all := make([]Artifact, len(file.servers))
	given := make(map[string]bool)
	for i, s := range file.servers {
		a := base.clone()
		base.Diagnostics = nil // once for the file
		a.Name = s.name
		readServer(&a, s.raw, file)
		if given[s.name] {
			a.invalid(fmt.Sprintf("the name %q occurs twice in this file; the first one is used",
				s.name))
			a.Server = nil
		}
		given[s.name] = true
		all[i] = a
	}
	return all
}

// toJSON returns the content of a configuration file, whose name has this extension, as JSON.
func toJSON(content, extension string) ([]byte, error) {
	var values any
	var err error
	switch extension {
	case ".toml":
		values, err = readTOML(content)
	case ".yaml":
		if err = yaml.Unmarshal([]byte(content), &values); err != nil {
			err = fmt.Errorf("it is not valid YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
		}
	default:
		return standardJSON([]byte(content))
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(values)
}

// parseServers parses a configuration file.
func parseServers(text []byte, r row) (serverFile, error) {
	var file serverFile
	var members map[string]json.RawMessage
	if json.Unmarshal(text, &members) != nil {
		return file, errors.New("it is not a JSON object")
	}
	raw, ok := members[r.member]
	if !ok && r.settings {
		return file, nil
	}
	if !ok {
		return file, fmt.Errorf("it has no member %s", r.member)
	}
	var inputs []struct {
		ID string `json:"id"`
	}
	if json.Unmarshal(members["inputs"], &inputs) == nil {
		for _, in := range inputs {
			file.inputs = append(file.inputs, in.ID)
		}
	}
	var rules struct{ Excluded []string }
	if r.gemini && json.Unmarshal(members["mcp"], &rules) == nil {
		file.disabled = rules.Excluded
	}
	var err error
	if file.servers, err = r.serversIn(raw); err != nil {
		return file, fmt.Errorf("its member %s is not an object of servers", r.member)
	}
	return file, nil
}

// serversIn returns the servers of an object, or of a list in which each has its name.
func (r row) serversIn(raw json.RawMessage) (all []namedServer, err error) {
	if r.list {
		var list []json.RawMessage
		if err := json.Unmarshal(raw, &list); err != nil {
			return nil, err
		}
		for i, config := range list {
			var server struct{ Name string }
			_ = json.Unmarshal(config, &server) // its other members are read later
			all = append(all, namedServer{cmp.Or(server.Name, fmt.Sprint("server ", i+1)), config})
		}
		return all, nil
	}
	servers, err := strictjson.ParseObject(raw)
	if err != nil {
		return nil, err
	}
	for name, config := range servers.All() {
		all = append(all, namedServer{name, config})
	}
	return all, nil
}

// serverConfig is the configuration of a server, with the keys of all files.
type serverConfig struct {
	Type, Transport, Cwd, URL string // the second is Mistral Vibe's
	// HTTPURL is Gemini CLI's, where URL is that of an SSE server, and ServerURL is Windsurf's.
	HTTPURL   string `json:"httpUrl"`
	ServerURL string `json:"serverUrl"`
	Command   words
	Args      []string
	Env       textValues
	Headers   textValues
	EnvFile   string
	// Environment is opencode's, and the next are Codex'.
	Environment textValues
	HTTPHeaders textValues        `json:"http_headers"`
	EnvVars     []json.RawMessage `json:"env_vars"`
	EnvHeaders  map[string]string `json:"env_http_headers"`
	Token       string            `json:"bearer_token_env_var"`
	Disabled    bool
	Enabled     *bool
}

// words are a command. In the files of opencode it is a list, with the arguments.
type words []string

// UnmarshalJSON implements [json.Unmarshaler].
func (w *words) UnmarshalJSON(raw []byte) error {
	if raw[0] == '[' {
		return json.Unmarshal(raw, (*[]string)(w))
	}
	*w = words{""}
	return json.Unmarshal(raw, &(*w)[0])
}

// textValues has the values of variables or headers by name.
type textValues map[string]string

// UnmarshalJSON implements [json.Unmarshaler]. The text of a number or a boolean is its value.
func (e *textValues) UnmarshalJSON(raw []byte) error {
	var values map[string]json.RawMessage
	err := json.Unmarshal(raw, &values)
	*e = make(textValues, len(values))
	for name, given := range values {
		value := string(given)
		if strings.ContainsAny(value[:1], `"[{n`) { // of all but numbers, true and false
			value = ""
			if failed := json.Unmarshal(given, &value); failed != nil {
				err = failed
			}
		}
		(*e)[name] = value
	}
	return err
}

// decodeServer decodes the configuration of a server.
func (r row) decodeServer(raw json.RawMessage) (c serverConfig, err error) {
	c.Env, c.Headers = textValues{}, textValues{}
	err = json.Unmarshal(raw, &c)
	c.Type, c.URL = cmp.Or(c.Type, c.Transport), cmp.Or(c.URL, c.ServerURL)
	maps.Copy(c.Env, c.Environment)
	maps.Copy(c.Headers, c.HTTPHeaders)
	switch {
	case !r.gemini:
		c.URL = cmp.Or(c.URL, c.HTTPURL)
	case c.HTTPURL != "":
		c.Type, c.URL = string(HTTP), c.HTTPURL
	case c.Type == "" && c.URL != "":
		c.Type = string(SSE)
	}
	if r.variable != nil {
		c.rewrite(r.variable)
	}
	for _, raw := range c.EnvVars {
		var name string
		if json.Unmarshal(raw, &name) == nil && c.Env[name] == "" {
			c.Env[name] = "${" + name + ":-}"
		}
	}
	for header, name := range c.EnvHeaders {
		c.Headers[header] = "${" + name + ":-}"
	}
	if c.Token != "" {
		c.Headers["Authorization"] = "Bearer ${" + c.Token + "}"
	}
	if len(c.Command) > 0 {
		c.Command = append(c.Command, c.Args...)
	}
	return c, err
}

// rewrite replaces the variables that match by ${NAME}.
func (c *serverConfig) rewrite(variable *regexp.Regexp) {
	for _, value := range []*string{&c.Cwd, &c.URL} {
		*value = variable.ReplaceAllString(*value, "$${$1}")
	}
	for _, list := range [][]string{c.Command, c.Args} {
		for i := range list {
			list[i] = variable.ReplaceAllString(list[i], "$${$1}")
		}
	}
	for _, values := range []map[string]string{c.Env, c.Headers} {
		for name, value := range values {
			values[name] = variable.ReplaceAllString(value, "$${$1}")
		}
	}
}

// readServer reads the configuration of one server.
func readServer(a *Artifact, raw json.RawMessage, file serverFile) {
	w, err := a.row.decodeServer(raw)
	if err != nil {
		a.invalid(memberFault(err))
		return
	}
	s := &Server{Cwd: w.Cwd, URL: Address(w.URL),
		Env: Secrets{w.Env}, EnvFile: w.EnvFile, Headers: Secrets{w.Headers}}
	if len(w.Command) > 0 {
		s.Command, s.Args = w.Command[0], w.Command[1:]
	}
	if w.Disabled || w.Enabled != nil && !*w.Enabled || slices.Contains(file.disabled, a.Name) {
		a.unused("the file disables it")
		return
	}
	if fault := s.transport(w.Type); fault != "" {
		a.invalid(fault)
		return
	}
	if s.Command != "" && w.URL != "" {
		a.diagnose("it has a command and a URL; it is treated as %s", s.Transport)
	}
	for _, id := range file.inputs {
		if bytes.Contains(raw, []byte("${input:"+id+"}")) {
			s.Inputs = append(s.Inputs, id)
		}
	}
	slices.Sort(s.Inputs)
	s.Inputs = slices.Compact(s.Inputs)
	if len(s.Inputs) > 0 {
		a.diagnose("it needs input that an editor would ask for: %s",
			strings.Join(s.Inputs, ", "))
	}
	a.Server, a.Description = s, s.String()
}

// memberFault returns a message that says which member has the wrong type, without its value.
func memberFault(err error) string {
	wrong, ok := errors.AsType[*json.UnmarshalTypeError](err)
	if !ok {
		return "its configuration cannot be read"
	}
	is, _, _ := strings.Cut(wrong.Value, " ")
	if wrong.Field == "" {
		return "its configuration is a JSON " + is + ", not an object"
	}
	return fmt.Sprintf("its member %s must not be a JSON %s", strings.ToLower(wrong.Field), is)
}

// transport sets the transport from its name, or from the other members if there is none.
func (s *Server) transport(name string) (fault string) {
	switch name {
	case "":
		s.Transport = Stdio
		if s.Command == "" {
			s.Transport = HTTP
		}
	case "stdio", "local":
		s.Transport = Stdio
	case "http", "streamable-http", "streamableHttp", "remote":
		s.Transport = HTTP
	case "sse":
		s.Transport = SSE
	default:
		return fmt.Sprintf("its type %q is not one of stdio, http and sse", name)
	}
	if s.Transport == Stdio && s.Command == "" {
		return "it has no command"
	}
	if s.Transport != Stdio && s.URL == "" {
		return "it has neither a command nor a url"
	}
	return ""
}
