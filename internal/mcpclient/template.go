package mcpclient

import (
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/mcproots"
)

// template matches what is replaced (M14). Anything else, such as ${HOME}, is left as it is.
var template = regexp.MustCompile(`\$\{(cwd|roots|root:[0-9]{1,4}|roots:json|roots:uris)\}`)

// expanded is a command's arguments and environment with the roots in the place of templates, by their real paths.
func expanded(c Config, roots mcproots.Snapshot) (args []string, env []Pair, err error) {
	if c.Policy.Templates != On {
		return c.Args, c.Env, nil
	}
	x := templates{roots: roots}
	for _, arg := range c.Args {
		if arg == "${roots}" { // alone, it is an argument for each root
			args = append(args, x.paths()...)
			continue
		}
		args = append(args, x.fill(arg))
	}
	for _, p := range c.Env {
		env = append(env, Pair{p.Name, x.fill(p.Value)})
	}
	return args, env, x.err
}

// templates replaces those of one command.
type templates struct {
	roots mcproots.Snapshot
	err   error
}

func (x *templates) fill(text string) string {
	return template.ReplaceAllStringFunc(text, func(found string) string {
		name := found[len("${") : len(found)-len("}")]
		switch name {
		case "cwd":
			return x.path(found, 0)
		case "roots":
			return strings.Join(x.paths(), string(os.PathListSeparator))
		case "roots:json":
			return string(backend.Encode(x.paths()))
		case "roots:uris":
			return string(backend.Encode(x.roots.URIs()))
		default:
			n, _ := strconv.Atoi(strings.TrimPrefix(name, "root:"))
			return x.path(found, n)
		}
	})
}

func (x *templates) path(found string, n int) string {
	if n >= x.roots.Len() {
		x.err = &TemplateError{Template: found, Roots: x.roots.Len()}
		return ""
	}
	return x.roots.At(n).Real.String()
}

func (x *templates) paths() []string {
	paths := make([]string, 0, x.roots.Len())
	for _, r := range x.roots.All() {
		paths = append(paths, r.Real.String())
	}
	return paths
}

// Variable is a part of a configuration file that is left to who starts the server: ${NAME}, ${NAME:-default},
// ${env:NAME} or ${workspaceFolder}.
type Variable struct {
	// Text is the variable as it is written, Name what is to be looked up.
	Text, Name string
	// Default is what it is where nothing has that name. It counts if HasDefault.
	Default    string
	HasDefault bool
}

// IsFolder reports whether it is the folder of the file, and nothing of the environment.
func (v Variable) IsFolder() bool { return v.Name == "workspaceFolder" && !v.HasDefault }

var variable = regexp.MustCompile(`\$\{[^}]*\}`)

// ReplaceVariables is text with what replace gives in the place of each variable.
func ReplaceVariables(text string, replace func(Variable) string) string {
	return variable.ReplaceAllStringFunc(text, func(written string) string {
		v := Variable{Text: written}
		name := strings.TrimPrefix(written[len("${"):len(written)-len("}")], "env:")
		v.Name, v.Default, v.HasDefault = strings.Cut(name, ":-")
		return replace(v)
	})
}
