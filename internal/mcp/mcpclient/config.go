package mcpclient

import (
	"fmt"
	"net/url"
	"reflect"
	"slices"

	acpmcp "github.com/acp-agent/acp-agent/acp/mcp"
	"github.com/acp-agent/acp-agent/internal/permission/consent"
	"github.com/acp-agent/acp-agent/internal/text/secret"
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

// declaresRoots reports whether the server may ask for the roots.
func (c Config) declaresRoots() bool {
	switch {
	case c.Policy.Roots != nil:
		return *c.Policy.Roots
	case c.Transport == acpmcp.Stdio:
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
	if c.Policy.ClientSecret != "" {
		values = append(values, c.Policy.ClientSecret)
	}
	s.AddServer(c.URL, c.Args, values)
	return s
}

// String returns the name and the transport.
func (c Config) String() string { return fmt.Sprintf("%s (%s)", c.Name, c.Transport) }

// GoString returns String.
func (c Config) GoString() string { return c.String() }

// MarshalText returns String, also for JSON and logs.
func (c Config) MarshalText() ([]byte, error) { return []byte(c.String()), nil }
