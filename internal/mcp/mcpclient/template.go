package mcpclient

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/acp-agent/acp-agent/internal/mcp/mcproots"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// rootTemplate matches what expandTemplates replaces. Anything else, such as ${HOME}, is left as it
// is.
var rootTemplate = text.Pattern(`\$\{(cwd|roots|root:[0-9]{1,4}|roots:json|roots:uris)\}`)

// expandTemplates returns a server's arguments and environment with templates replaced by the real
// paths of the roots.
func expandTemplates(c Config, roots mcproots.Snapshot) (args []string, env []Pair, err error) {
	if !c.Policy.Templates {
		return c.Args, c.Env, nil
	}
	paths := make([]string, 0, roots.Len())
	for _, r := range roots.All() {
		paths = append(paths, r.Real.String())
	}
	expand := func(s string) string {
		return rootTemplate().ReplaceAllStringFunc(s, func(template string) string {
			switch name := rootTemplate().FindStringSubmatch(template)[1]; name {
			case "roots":
				return strings.Join(paths, string(os.PathListSeparator))
			case "roots:json":
				return string(strictjson.Encode(paths))
			case "roots:uris":
				return string(strictjson.Encode(roots.URIs()))
			default: // cwd or root:N
				n, _ := strconv.Atoi(strings.TrimPrefix(name, "root:"))
				if n >= len(paths) {
					err = fmt.Errorf("%s: %w: the session has %s, counted from 0",
						template, errNoSuchRoot, text.Count(len(paths), "root", "roots"))
					return ""
				}
				return paths[n]
			}
		})
	}
	for i, arg := range c.Args {
		if arg == "${roots}" { // replaced by one argument for each root
			args = append(args, paths...)
		} else {
			args = append(args, expand(arg))
		}
		if err != nil {
			return nil, nil, fmt.Errorf("argument %d: %w", i+1, err)
		}
	}
	for _, p := range c.Env {
		env = append(env, Pair{p.Name, expand(p.Value)})
		if err != nil {
			return nil, nil, fmt.Errorf("variable %s: %w", text.Name(p.Name), err)
		}
	}
	return args, env, nil
}
