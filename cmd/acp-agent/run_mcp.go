package main

import (
	"fmt"
	"os"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/internal/strictjson"
)

// mcpServers are the MCP servers that the flags give the session: first those of --mcp, then those of the files, in
// order.
func (r runFlags) mcpServers() ([]sdk.McpServer, error) {
	var all []sdk.McpServer
	for _, given := range r.mcp {
		name, line, named := strings.Cut(given, "=")
		words, err := splitCommand(line)
		switch {
		case err != nil:
			return nil, usagef("--mcp %s: %v", name, err)
		case !named || name == "" || len(words) == 0:
			return nil, usagef(`--mcp %q: give a name and a command, such as --mcp "files=npx -y @modelcontextprotocol/server-filesystem"`, given)
		}
		all = append(all, sdk.McpServer{Stdio: &sdk.McpServerStdio{Name: name, Command: words[0], Args: words[1:], Env: []sdk.EnvVariable{}}})
	}
	for _, path := range r.mcpConfigs {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, usagef("--mcp-config: %v", err)
		}
		servers, err := parseMCPConfig(text)
		if err != nil {
			return nil, usagef("--mcp-config %s: %v", path, err)
		}
		all = append(all, servers...)
	}
	return all, nil
}

// splitCommand splits a command line into words as a shell does, without expanding anything: quotes of both kinds
// hold a word together, and a backslash takes the meaning of a quote, a space or a backslash behind it, except in single
// quotes. Elsewhere it stands for itself, so that paths of Windows can be given.
func splitCommand(line string) ([]string, error) {
	var words []string
	var word strings.Builder
	inWord, quote := false, byte(0)
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case c == '\\' && quote != '\'' && i+1 < len(line) && strings.IndexByte("\\\"' \t\n", line[i+1]) >= 0:
			i++
			word.WriteByte(line[i])
			inWord = true
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '"' || c == '\''):
			quote, inWord = c, true
		case quote == 0 && (c == ' ' || c == '\t' || c == '\n'):
			if inWord {
				words = append(words, word.String())
			}
			word.Reset()
			inWord = false
		default:
			word.WriteByte(c)
			inWord = true
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("a %c is not closed", quote)
	}
	if inWord {
		words = append(words, word.String())
	}
	return words, nil
}

// parseMCPConfig reads {"mcpServers": {NAME: {command, args, env} or {type, url, headers}}}, the form that most
// programs have for it. Values stay as written.
func parseMCPConfig(text []byte) ([]sdk.McpServer, error) {
	file, err := strictjson.ParseObject(text)
	if err != nil {
		return nil, err
	}
	listed, wrong := file.Field("mcpServers").Masked().Object()
	var servers []sdk.McpServer
	for name := range listed.All() {
		server, bad := mcpServer(name, listed.Field(name))
		servers, wrong = append(servers, server), append(wrong, bad...)
	}
	if name, twice := listed.Duplicate(); twice {
		return nil, fmt.Errorf("mcpServers names %q twice", name)
	}
	return servers, strictjson.Refuse(wrong...)
}

// mcpServer reads one server. One with a url is reached by HTTP unless its type says otherwise.
func mcpServer(name string, field strictjson.Field) (sdk.McpServer, []strictjson.Violation) {
	o, wrong := field.Object()
	if wrong != nil {
		return sdk.McpServer{}, wrong
	}
	kind := "stdio"
	if given := o.Field("type"); given.Present() {
		kind, wrong = given.Text()
	} else if o.Field("url").Present() {
		kind = "http"
	}
	note := func(bad []strictjson.Violation) { wrong = append(wrong, bad...) }
	switch kind {
	case "stdio":
		s := &sdk.McpServerStdio{Name: name, Args: []string{}, Env: []sdk.EnvVariable{}}
		var bad []strictjson.Violation
		s.Command, bad = o.Field("command").Text()
		note(bad)
		if args := o.Field("args"); args.Present() {
			s.Args, bad = args.Texts()
			note(bad)
		}
		note(eachText(o.Field("env"), func(name, value string) { s.Env = append(s.Env, sdk.EnvVariable{Name: name, Value: value}) }))
		return sdk.McpServer{Stdio: s}, wrong
	case "http", "streamable-http", "sse":
		url, bad := o.Field("url").Text()
		note(bad)
		headers := []sdk.HttpHeader{}
		note(eachText(o.Field("headers"), func(name, value string) { headers = append(headers, sdk.HttpHeader{Name: name, Value: value}) }))
		if kind == "sse" {
			return sdk.McpServer{Sse: &sdk.McpServerSseInline{Name: name, Url: url, Headers: headers, Type: kind}}, wrong
		}
		return sdk.McpServer{Http: &sdk.McpServerHttpInline{Name: name, Url: url, Headers: headers, Type: "http"}}, wrong
	default:
		note([]strictjson.Violation{o.Field("type").Refuse(strictjson.Unsupported).Expecting("stdio, http or sse")})
		return sdk.McpServer{}, wrong
	}
}

// eachText yields the members of an object of texts, which may be absent.
func eachText(field strictjson.Field, yield func(name, value string)) []strictjson.Violation {
	if !field.Present() {
		return nil
	}
	object, wrong := field.Object()
	for name := range object.All() {
		value, bad := object.Field(name).Text()
		wrong = append(wrong, bad...)
		yield(name, value)
	}
	return wrong
}
