package mcpclient

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/workspace"
)

// FoundServer is a server that a file in a root configures. It must not be started before the user has allowed it.
type FoundServer struct {
	// Root is the real path of the root, File the configuration file.
	Root workspace.Dir
	File string
	// Config is the configuration as written, with no variables replaced. All of it counts for the ID; values of the
	// environment and of headers are shown to the user only where they can change what is run.
	Config Config
}

// ID returns the name of the consent for s: a hash of its root, name and whole configuration. Even another environment
// variable can make the same command do something else.
func (s FoundServer) ID() ConsentID {
	sorted := func(pairs []Pair) []string {
		all := make([]string, len(pairs))
		for i, p := range pairs {
			all[i] = strconv.Itoa(len(p.Name)) + " " + p.Name + "=" + p.Value
		}
		slices.Sort(all)
		return all
	}
	hash := sha256.New()
	for _, part := range [][]string{
		{s.Root.String(), s.Config.Name, string(s.Config.Transport), s.Config.Command, s.Config.Dir, s.Config.URL},
		s.Config.Args, sorted(s.Config.Env), sorted(s.Config.Headers),
	} {
		fmt.Fprintf(hash, "%d\n", len(part))
		for _, value := range part {
			fmt.Fprintf(hash, "%d %s\n", len(value), value)
		}
	}
	return ConsentID(hex.EncodeToString(hash.Sum(nil)))
}

// describe returns everything that would be started or connected to, as Markdown for the user. Values are quoted in a code
// block so that none can hide or imitate another.
func (s FoundServer) describe() string {
	lines := []string{"File: " + strconv.Quote(s.File)}
	if c := s.Config; c.Transport == Stdio {
		lines = append(lines, "Command: "+strconv.Quote(c.Command))
		for i, arg := range c.Args {
			lines = append(lines, fmt.Sprintf("Argument %d: %s", i+1, strconv.Quote(arg)))
		}
		if c.Dir != "" {
			lines = append(lines, "Directory: "+strconv.Quote(c.Dir))
		}
	} else {
		lines = append(lines, "URL: "+strconv.Quote(c.URL))
	}
	for _, p := range s.Config.Env {
		shown := p.Name
		if altersExecution(p.Name) {
			shown += "=" + p.Value
		}
		lines = append(lines, "Environment: "+strconv.Quote(shown)+variablesIn(p.Value))
	}
	for _, p := range s.Config.Headers {
		lines = append(lines, "Header: "+strconv.Quote(p.Name)+variablesIn(p.Value))
	}
	return "This file configures the MCP server below. It runs with your rights, outside the session's containment.\n\n" +
		strings.TrimSuffix(text.Block("", strings.Join(lines, "\n")), "\n")
}

// variablesIn names the environment variables that a hidden value refers to, for the end of a line. It returns "" if there
// are none.
func variablesIn(value string) string {
	var names []string
	ReplaceVariables(value, func(v Variable) string {
		if !v.IsFolder() {
			names = append(names, strconv.Quote(v.Name))
		}
		return ""
	})
	if names == nil {
		return ""
	}
	return ", with " + strings.Join(names, " and ") + " of your environment"
}

// altersExecution reports whether an environment variable can make a program run other code than its command line says. The
// values of such variables are shown; others may be secrets.
func altersExecution(name string) bool {
	name = strings.ToUpper(name)
	if strings.HasPrefix(name, "GIT_CONFIG_KEY_") { // the name of a setting, not a secret
		return true
	}
	for _, prefix := range []string{"LD_", "DYLD_", "NODE_", "NPM_", "PYTHON", "RUBY", "PERL", "JAVA", "JDK_", "BUN_", "DENO_", "UV_", "PIP_", "GIT_", "GO",
		"CARGO", "RUSTC", "DOTNET_", "COR_", "CORECLR_", "ELECTRON_", "LUA_", "PHP", "XDG_", "R_", "DOCKER_", "SSL_CERT_"} {
		if strings.HasPrefix(name, prefix) {
			return !strings.Contains(name, "TOKEN") && !strings.Contains(name, "KEY") && !strings.Contains(name, "SECRET")
		}
	}
	return slices.Contains([]string{"PATH", "PATHEXT", "ENV", "BASH_ENV", "SHELL", "IFS", "CLASSPATH", "_JAVA_OPTIONS", "HOME",
		"USERPROFILE", "APPDATA", "LOCALAPPDATA", "ZDOTDIR", "COMSPEC", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "EDITOR", "BROWSER", "PAGER"}, name)
}

// Variable is a reference in a configuration file that is resolved when the server starts: ${NAME}, ${NAME:-default},
// ${env:NAME} or ${workspaceFolder}.
type Variable struct {
	// Text is the reference as written, Name the environment variable.
	Text, Name string
	// Default replaces an unset variable if HasDefault is true.
	Default    string
	HasDefault bool
}

// IsFolder reports whether v refers to the folder of the file instead of the environment.
func (v Variable) IsFolder() bool { return v.Name == "workspaceFolder" && !v.HasDefault }

var variable = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\$\{[^}]*\}`) })

// ReplaceVariables returns s with each variable replaced by the result of replace.
func ReplaceVariables(s string, replace func(Variable) string) string {
	return variable().ReplaceAllStringFunc(s, func(written string) string {
		v := Variable{Text: written}
		name := strings.TrimPrefix(written[len("${"):len(written)-len("}")], "env:")
		v.Name, v.Default, v.HasDefault = strings.Cut(name, ":-")
		return replace(v)
	})
}
