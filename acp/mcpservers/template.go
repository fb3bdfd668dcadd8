package mcpservers

import (
	"encoding/json"
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/acp-agent/acp-agent/workspace/mcproots"
)

// template matches what is replaced (M14). Anything else, such as ${HOME}, is left as it is.
var template = regexp.MustCompile(`\$\{(cwd|roots|root:[0-9]{1,4}|roots:json|roots:uris)\}`)

// expanded is a command's arguments and environment with the roots in the place of templates, by their real paths.
func expanded(c Config, roots mcproots.Snapshot) (args []string, env []Pair, err error) {
	if c.Policy.Templates != On {
		return c.Args, c.Env, nil
	}
	x := expansion{roots: roots}
	for _, arg := range c.Args {
		if arg == "${roots}" { // alone, it is an argument for each root
			args = append(args, x.paths()...)
			continue
		}
		args = append(args, x.expand(arg))
	}
	for _, p := range c.Env {
		env = append(env, Pair{p.Name, x.expand(p.Value)})
	}
	return args, env, x.err
}

type expansion struct {
	roots mcproots.Snapshot
	err   error
}

func (x *expansion) expand(text string) string {
	return template.ReplaceAllStringFunc(text, func(found string) string {
		name := found[len("${") : len(found)-len("}")]
		switch name {
		case "cwd":
			return x.path(found, 0)
		case "roots":
			return strings.Join(x.paths(), string(os.PathListSeparator))
		case "roots:json":
			return list(x.paths())
		case "roots:uris":
			return list(x.roots.URIs())
		default:
			n, _ := strconv.Atoi(strings.TrimPrefix(name, "root:"))
			return x.path(found, n)
		}
	})
}

func (x *expansion) path(found string, n int) string {
	if n >= x.roots.Len() {
		x.err = &TemplateError{Template: found, Roots: x.roots.Len()}
		return ""
	}
	return x.roots.At(n).Real.String()
}

func (x *expansion) paths() []string {
	paths := make([]string, 0, x.roots.Len())
	for _, r := range x.roots.All() {
		paths = append(paths, r.Real.String())
	}
	return paths
}

func list(texts []string) string {
	raw, err := json.Marshal(texts)
	if err != nil {
		return "[]" // strings can always be written
	}
	return string(raw)
}
