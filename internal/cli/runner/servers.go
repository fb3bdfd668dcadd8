package runner

import (
	"bytes"
	"cmp"
	"fmt"
	"iter"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/internal/files/namedfile"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/text/usage"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// Servers returns the MCP servers of a command line: first those that are given as NAME=COMMAND, then
// those of files, in order.
func Servers(commands, files []string) ([]sdk.McpServer, error) {
	var all []sdk.McpServer
	for _, given := range commands {
		name, line, named := strings.Cut(given, "=")
		words, err := text.Words(line)
		switch {
		case err != nil:
			return nil, usage.Errorf("--mcp %s: %v", name, err)
		case !named || name == "" || len(words) == 0:
			return nil, usage.Errorf("--mcp %q needs a name and a command, such as "+
				`--mcp "files=npx -y some-mcp-server"`, given)
		case slices.ContainsFunc(all, func(s sdk.McpServer) bool { return s.Stdio.Name == name }):
			return nil, usage.Errorf("--mcp: two MCP servers are called %q: give one of them another "+
				"name", name)
		}
		all = append(all,
			sdk.McpServer{Stdio: &sdk.McpServerStdio{Name: name, Command: words[0], Args: words[1:],
				Env: []sdk.EnvVariable{}}})
	}
	servers, err := ReadServers(files)
	return append(all, servers...), err
}

// ReadServers returns the MCP servers of the files that --mcp-config names, in order.
func ReadServers(files []string) ([]sdk.McpServer, error) {
	var all []sdk.McpServer
	for _, path := range files {
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, usage.Errorf("--mcp-config: %v", namedfile.Explain(err))
		}
		if text.IsUTF16(content) {
			return nil, usage.Errorf("--mcp-config %s: the file is UTF-16 text: save it as UTF-8",
				path)
		}
		servers, err := parseServers(content)
		if err != nil {
			return nil, usage.Errorf("--mcp-config %s: %v", path, err)
		}
		all = append(all, servers...)
	}
	return all, nil
}

// parseServers parses {"mcpServers": {NAME: {command, args, env} or {type, url, headers}}}, the
// common format of MCP clients. It leaves servers out that are disabled, and replaces references to
// environment variables.
func parseServers(text []byte) ([]sdk.McpServer, error) {
	file, err := strictjson.ParseObject(bytes.TrimPrefix(text, []byte("\ufeff")))
	if err != nil {
		return nil, fmt.Errorf(`%w; write {"mcpServers": {"NAME": {"command": "PROGRAM"}}}`, err)
	}
	var v strictjson.Violations
	listed, _ := v.Object(file.Field("mcpServers").Masked())
	if name, twice := listed.Duplicate(); twice {
		return nil, fmt.Errorf("mcpServers has two servers called %q", name)
	}
	var servers []sdk.McpServer
	for name := range listed.All() {
		o, ok := v.Object(listed.Field(name))
		if !ok || isSet(o.Field("disabled"), "true", &v) || isSet(o.Field("enabled"), "false", &v) {
			continue
		}
		server := mcpServer(name, o, &v)
		if err := expandServer(&server); err != nil {
			return nil, fmt.Errorf("mcpServers.%s: %w", name, err)
		}
		servers = append(servers, server)
	}
	return servers, v.Err()
}

// isSet reports whether a field that is true or false has a value.
func isSet(f strictjson.Field, value string, v *strictjson.Violations) bool {
	switch raw := string(f.Raw()); {
	case !f.Present(), raw == "true", raw == "false":
		return raw == value
	default:
		v.Add(f.Refuse(strictjson.Type).Expecting("true or false"))
		return false
	}
}

// either returns the first of several fields, of which clients write one or another.
func either(o strictjson.Object, name string, others ...string) strictjson.Field {
	for _, other := range append([]string{name}, others...) {
		if f := o.Field(other); f.Present() {
			return f
		}
	}
	return o.Field(name)
}

// envReference matches a reference to an environment variable: ${NAME}, ${NAME:-default} or
// ${env:NAME}. It does not match the templates of MCP servers with a colon, such as ${root:0}.
var envReference = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(:-[^}]*)?\}`)
})

// expandServer replaces the references to environment variables in a server. It fails for one that
// is not set.
func expandServer(s *sdk.McpServer) (failed error) {
	var values []*string
	var headers []sdk.HttpHeader
	switch {
	case s.Stdio != nil:
		values = append(values, &s.Stdio.Command)
		for i := range s.Stdio.Args {
			values = append(values, &s.Stdio.Args[i])
		}
		for i := range s.Stdio.Env {
			values = append(values, &s.Stdio.Env[i].Value)
		}
	case s.Http != nil:
		values, headers = append(values, &s.Http.Url), s.Http.Headers
	case s.Sse != nil:
		values, headers = append(values, &s.Sse.Url), s.Sse.Headers
	}
	for i := range headers {
		values = append(values, &headers[i].Value)
	}
	for _, value := range values {
		*value = envReference().ReplaceAllStringFunc(*value, func(written string) string {
			m := envReference().FindStringSubmatch(written)
			set, ok := os.LookupEnv(m[1])
			switch {
			case ok:
				return set
			case m[2] != "":
				return strings.TrimPrefix(m[2], ":-")
			case written != "${cwd}" && written != "${roots}": // which are templates of the policy
				failed = cmp.Or(failed, fmt.Errorf("%s is not set in the environment", written))
			}
			return written
		})
	}
	return failed
}

// mcpServer decodes one server. A server with a url uses HTTP unless it has another type.
func mcpServer(name string, o strictjson.Object, v *strictjson.Violations) sdk.McpServer {
	kind, given := "stdio", either(o, "type", "transport", "transportType")
	url := either(o, "url", "httpUrl", "serverUrl") // the latter of Gemini CLI and Windsurf
	if given.Present() {
		kind = v.Text(given)
	} else if !o.Field("command").Present() && url.Present() {
		kind = "http"
	}
	switch kind {
	case "stdio", "local":
		s := &sdk.McpServerStdio{Name: name, Command: v.Text(o.Field("command")), Args: []string{},
			Env: []sdk.EnvVariable{}}
		if args := o.Field("args"); args.Present() {
			s.Args = append(s.Args, v.Texts(args)...) // never nil, which would be sent as null
		}
		for name, value := range textMembers(o.Field("env"), v) {
			s.Env = append(s.Env, sdk.EnvVariable{Name: name, Value: value})
		}
		return sdk.McpServer{Stdio: s}
	case "http", "streamable-http", "streamableHttp", "sse":
		to, headers := v.Text(url), []sdk.HttpHeader{}
		for name, value := range textMembers(o.Field("headers"), v) {
			headers = append(headers, sdk.HttpHeader{Name: name, Value: value})
		}
		if kind == "sse" {
			return sdk.McpServer{Sse: &sdk.McpServerSseInline{Name: name, Url: to,
				Headers: headers, Type: "sse"}}
		}
		return sdk.McpServer{Http: &sdk.McpServerHttpInline{Name: name, Url: to, Headers: headers,
			Type: "http"}}
	default:
		v.Add(given.Refuse(strictjson.Unsupported).Expecting("use stdio, http or sse"))
		return sdk.McpServer{}
	}
}

// textMembers yields the members of an object of strings, which may be absent. The text of a number
// or a boolean is its value.
func textMembers(field strictjson.Field, v *strictjson.Violations) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		if !field.Present() {
			return
		}
		object, _ := v.Object(field)
		for name := range object.All() {
			f := object.Field(name)
			value := string(f.Raw())
			if strings.ContainsAny(value[:1], `"[{n`) {
				value = v.Text(f)
			}
			if !yield(name, value) {
				return
			}
		}
	}
}
