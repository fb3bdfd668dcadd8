package mcpclient

import (
	"fmt"
	"net/url"
	"os"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"

	acpmcp "github.com/acp-agent/acp-agent/acp/mcp"
	"github.com/acp-agent/acp-agent/internal/mcp/mcproots"
	"github.com/acp-agent/acp-agent/internal/permission/consent"
	"github.com/acp-agent/acp-agent/internal/sandbox"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/text/secret"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/workspace"
)

// Pair is an environment variable or a header. The value may be a secret.
type Pair struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Config is a server's configuration, from the client or from a file in a root, and the user's
// policy for it. It holds secrets; it is printed, logged and encoded without them.
type Config struct {
	// Name is the client's name for the server. Names need not be unique.
	Name      string
	Transport acpmcp.Transport
	// Command, Args and Env start a stdio server.
	Command string
	Args    []string
	Env     []Pair
	// Dir is the working directory of a stdio server, in a root. Default: the session's cwd.
	Dir string
	// URL and Headers reach an http server.
	URL     string
	Headers []Pair
	// File is the path of the file in a root that configures the server, which then gets only the
	// basic variables of our environment. It is "" for a server from the client.
	File string
	// Consent identifies what the user allowed of a server that a file configures, and Asked the
	// question if the answer holds for one start. Check, if not nil, is called before each start,
	// with the session's folders. If it fails, the user must be asked again.
	Consent, Asked string
	Check          func(*workspace.Workspace) error
	// Secrets are values in Args to keep out of logs and errors. Values of Env and Headers, and
	// possible secrets in URLs, are always kept out.
	Secrets []string
	// Policy is set by Apply.
	Policy acpmcp.Policy
}

// Apply makes the server follow a policy. For a server that a file in a root configures, the policy
// can only deny: the file chose the server's name, so what the policy would grant is ignored.
func (c *Config) Apply(p acpmcp.Policy) {
	if c.File != "" {
		p.Templates = false
		p.Sandbox.Write, p.Sandbox.Read = nil, nil
		if p.Roots != nil && *p.Roots {
			p.Roots = nil
		}
	}
	c.Policy = p
}

// Identity identifies what is started or connected to, without the policy.
func (c Config) Identity() string {
	pairs := func(all []Pair) (flat []string) {
		for _, p := range all {
			flat = append(flat, p.Name, p.Value)
		}
		return flat
	}
	return string(consent.NewID([]string{c.Name, string(c.Transport), c.Command, c.Dir,
		c.URL, c.File, c.Consent}, c.Args, pairs(c.Env), pairs(c.Headers)))
}

// isProcess reports whether the server runs as a process, and is not reached over HTTP.
func (c Config) isProcess() bool { return c.Transport == acpmcp.Stdio }

// startsWithRoots reports whether the server is a process that other roots change: its arguments,
// environment, or sandbox.
func (c Config) startsWithRoots() bool {
	return c.isProcess() && (c.Policy.Templates || c.Policy.Sandbox.Mode != sandbox.Off)
}

// declaresRoots reports whether the server may ask for the roots.
func (c Config) declaresRoots() bool {
	switch {
	case c.Policy.Roots != nil:
		return *c.Policy.Roots
	case c.isProcess():
		return true
	}
	u, err := url.Parse(c.URL)
	return err == nil && secret.IsLoopback(u.Hostname())
}

// equal reports whether a server that was started with one configuration can be kept with the
// other.
func (c Config) equal(other Config) bool {
	return c.Identity() == other.Identity() && c.Asked == other.Asked &&
		reflect.DeepEqual(c.Policy, other.Policy)
}

// secrets returns a scrubber of the values to keep out of logs and errors.
func (c Config) secrets() *secret.Scrubber {
	s := &secret.Scrubber{}
	s.AddEnvironment()
	values := slices.Clone(c.Secrets)
	for _, p := range slices.Concat(c.Env, c.Headers) {
		if c.Policy.Templates { // errors name the templates
			values = append(values, rootTemplate().Split(p.Value, -1)...)
		} else {
			values = append(values, p.Value)
		}
	}
	s.AddServer(c.URL, c.Args, append(values, c.Policy.ClientSecret))
	return s
}

// String returns the name and the transport.
func (c Config) String() string { return fmt.Sprintf("%s (%s)", c.Name, c.Transport) }

// GoString returns String.
func (c Config) GoString() string { return c.String() }

// MarshalText returns String, also for JSON and logs.
func (c Config) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// BasicVariables returns the names of the environment variables that every server gets, even one
// that a file in a root configures without naming them. Other variables may be secrets, or change
// what the configured command does.
func BasicVariables() []string {
	if runtime.GOOS == "windows" { // where programs do not start without some of them
		return []string{
			"APPDATA", "COMSPEC", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATH", "PATHEXT",
			"PROCESSOR_ARCHITECTURE", "PROGRAMFILES", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "TMP",
			"USERNAME", "USERPROFILE", "WINDIR",
		}
	}
	return []string{"HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"}
}

// BasicEnvironment returns the basic variables that are set, as NAME=VALUE. It is not nil.
func BasicEnvironment() []string {
	env := []string{}
	for _, name := range BasicVariables() {
		if value, set := os.LookupEnv(name); set {
			env = append(env, name+"="+value)
		}
	}
	return env
}

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
