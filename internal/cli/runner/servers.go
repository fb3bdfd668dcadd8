package runner

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/discovery"
	"github.com/acp-agent/acp-agent/internal/files/namedfile"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/usage"
)

// Servers returns the MCP servers of a command line: first those that are given as NAME=COMMAND,
// then those of files, in order.
func Servers(commands, files []string) ([]sdk.McpServer, error) {
	var all []sdk.McpServer
	for _, given := range commands {
		name, line, named := strings.Cut(given, "=")
		words, err := text.Words(line)
		switch {
		case err != nil:
			return nil, usage.Errorf("--mcp %s: %v: put all of NAME=COMMAND into single quotes, "+
				"and double ones around its words", name, err)
		case !named || name == "" || len(words) == 0:
			return nil, usage.Errorf("--mcp %q needs a name and a command, such as "+
				`--mcp "files=npx -y some-mcp-server"`, given)
		case slices.ContainsFunc(all, func(s sdk.McpServer) bool { return s.Stdio.Name == name }):
			return nil, usage.Errorf("--mcp: two MCP servers are called %q: give one of them "+
				"another name", name)
		}
		all = append(all,
			sdk.McpServer{Stdio: &sdk.McpServerStdio{Name: name, Command: words[0], Args: words[1:],
				Env: []sdk.EnvVariable{}}})
	}
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

// parseServers returns the servers of a file in the common format of MCP clients. It leaves servers
// out that are disabled, and replaces references to environment variables.
func parseServers(content []byte) ([]sdk.McpServer, error) {
	found, err := discovery.ParseServers(bytes.TrimPrefix(content, []byte("\ufeff")))
	if err != nil {
		return nil, fmt.Errorf(`%w; write {"mcpServers": {"NAME": {"command": "PROGRAM"}}}`, err)
	}
	var servers []sdk.McpServer
	for _, a := range found {
		if a.State == discovery.Unused {
			continue
		}
		err := errors.New(a.Reason)
		if a.State == discovery.Active {
			var server sdk.McpServer
			server, err = expandServer(a.Name, *a.Server)
			servers = append(servers, server)
		}
		if err != nil {
			return nil, fmt.Errorf("mcpServers.%s: %w", a.Name, err)
		}
	}
	return servers, nil
}

// envReference matches a reference to an environment variable: ${NAME}, ${NAME:-default} or
// ${env:NAME}. It does not match the templates of MCP servers with a colon, such as ${root:0}.
var envReference = text.Pattern(`\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(:-[^}]*)?\}`)

// expandServer returns a server with the references to environment variables replaced. It fails for
// one that is not set.
func expandServer(name string, s discovery.Server) (_ sdk.McpServer, failed error) {
	expand := func(value string) string {
		return envReference().ReplaceAllStringFunc(value, func(written string) string {
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
	if s.Transport == discovery.Stdio {
		// Empty lists are not nil, which would be sent as null.
		stdio := &sdk.McpServerStdio{Name: name, Command: expand(s.Command), Args: []string{},
			Env: []sdk.EnvVariable{}}
		for _, arg := range s.Args {
			stdio.Args = append(stdio.Args, expand(arg))
		}
		for name, value := range s.Env.All() {
			stdio.Env = append(stdio.Env, sdk.EnvVariable{Name: name, Value: expand(value)})
		}
		return sdk.McpServer{Stdio: stdio}, failed
	}
	to, headers := expand(string(s.URL)), []sdk.HttpHeader{}
	for name, value := range s.Headers.All() {
		headers = append(headers, sdk.HttpHeader{Name: name, Value: expand(value)})
	}
	if s.Transport == discovery.SSE {
		return sdk.McpServer{Sse: &sdk.McpServerSseInline{Name: name, Url: to, Headers: headers,
			Type: "sse"}}, failed
	}
	return sdk.McpServer{Http: &sdk.McpServerHttpInline{Name: name, Url: to, Headers: headers,
		Type: "http"}}, failed
}
