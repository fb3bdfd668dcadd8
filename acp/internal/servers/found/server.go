// Package found starts the MCP servers that files in roots configure, once the user has allowed it.
//
//	server, err := found.New(artifact, workspace)
//	start, err := server.Ask(ctx, user, consents, workspace)
//	// start may be started
package found

import (
	"cmp"
	"fmt"
	"net/url"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/acp-agent/acp-agent/acp/mcp"
	"github.com/acp-agent/acp-agent/internal/mcp/mcpclient"
	"github.com/acp-agent/acp-agent/internal/permission/consent"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/text/secret"
	"github.com/acp-agent/acp-agent/workspace"
)

// Server is a server that a file in a root configures. It must not be started before the user
// has allowed it.
type Server struct {
	// Root is the real path of the root, File the configuration file.
	Root workspace.Dir
	File string
	// Config is the configuration as written, with no variables replaced. The ID covers all of it.
	Config mcpclient.Config
	// EnvFile is a file in the roots with more environment variables for a Stdio server, as
	// written; "" if there is none.
	EnvFile string
	// Start is Config with its variables replaced, and with those of EnvFile. Ask asks about it.
	Start mcpclient.Config

	envPath  string           // of EnvFile, with its variables replaced
	added    []mcpclient.Pair // its variables that are in Start
	replaced []replacement    // in Start
}

// replacement is the value of a variable in a configuration.
type replacement struct {
	written, name, value string
	ours                 bool // from our environment, so the file did not choose it
}

// ID returns the name of the consent for s: a hash of its root, its name, its whole configuration,
// the shown values of the variables in its command line or URL, and its environment file. The
// environment is included because another variable can make the same command do something else.
func (s Server) ID() consent.ID {
	sorted := func(pairs []mcpclient.Pair) []string {
		all := make([]string, len(pairs))
		for i, p := range pairs {
			all[i] = strconv.Itoa(len(p.Name)) + " " + p.Name + "=" + p.Value
		}
		slices.Sort(all)
		return all
	}
	c := s.Config
	parts := [][]string{
		{s.Root.String(), c.Name, string(c.Transport), c.Command, c.Dir, c.URL},
		c.Args, sorted(c.Env), sorted(c.Headers),
	}
	line := strings.Join(append([]string{c.Command}, c.Args...), "\n")
	if meaning := s.meaning(line) + s.destination(); meaning != "" {
		parts = append(parts, []string{meaning})
	}
	if s.EnvFile != "" {
		parts = append(parts, []string{"environment file", s.EnvFile, s.envPath}, sorted(s.added))
	}
	return consent.NewID(parts...)
}

// describe returns everything that would be started or connected to, as Markdown for the user, and
// why a consent cannot last. Values are quoted in a code block, so that no value can hide or imitate
// another.
func (s Server) describe(gaps []string) string {
	lines := []string{"File: " + text.Quote(s.File)}
	if c := s.Config; c.Transport == mcp.Stdio {
		lines = append(lines, "Command: "+text.Quote(c.Command)+s.meaning(c.Command))
		for i, arg := range c.Args {
			line := fmt.Sprintf("Argument %d: %s", i+1, text.Quote(arg)+s.meaning(arg))
			lines = append(lines, line)
		}
		if c.Dir != "" {
			lines = append(lines, "Directory: "+text.Quote(c.Dir))
		}
	} else {
		lines = append(lines, "URL: "+text.Quote(c.URL)+s.destination())
	}
	for _, p := range s.Config.Env {
		lines = append(lines, "Environment: "+s.showPair(p, "="))
	}
	if s.EnvFile != "" {
		lines = append(lines, "Environment file: "+text.Quote(s.envPath))
		for _, p := range s.added {
			lines = append(lines, "Environment from that file: "+s.showValue(p, "="))
		}
	}
	for _, p := range s.Config.Headers {
		lines = append(lines, "Header: "+s.showPair(p, ": "))
	}
	for _, gap := range gaps {
		lines = append(lines, "Cannot be allowed permanently: "+gap)
	}
	about := "This file configures the MCP server below."
	if s.Config.Transport == mcp.Stdio {
		about += " It runs with your rights, outside the session's containment. It gets the " +
			"environment variables named below, and of yours only " +
			strings.Join(mcpclient.BasicVariables(), ", ") + "."
	}
	return about + "\n\n" + strings.TrimSuffix(text.Block("", strings.Join(lines, "\n")), "\n")
}

// meaning returns the end of a line that says what the variables in a text stand for, or "" if
// there are none.
func (s Server) meaning(written string) string {
	var b strings.Builder
	seen := map[string]bool{}
	for _, reference := range variable().FindAllString(written, -1) {
		is := func(r replacement) bool { return r.written == reference }
		i := slices.IndexFunc(s.replaced, is)
		if i < 0 || seen[reference] {
			continue
		}
		seen[reference] = true
		r := s.replaced[i]
		fmt.Fprintf(&b, ", where %s is ", text.Quote(reference))
		if r.ours && (secret.IsCredential(r.name) || userInfo().MatchString(r.value)) {
			b.WriteString(hidden(r.value))
		} else {
			b.WriteString(text.Quote(r.value))
		}
	}
	return b.String()
}

// destination returns the end of a line that says where a URL with variables leads, or "" if it has
// none.
func (s Server) destination() string {
	at := origin(s.Start.URL)
	if at == "" || s.Start.URL == s.Config.URL {
		return ""
	}
	return ", at " + text.Quote(at)
}

// showValue shows an environment variable or a header. The value of a credential is hidden, unless
// something else in the configuration can use it by its name.
func (s Server) showValue(p mcpclient.Pair, equals string) string {
	if secret.IsCredential(p.Name) && !s.mentions(p) {
		return text.Quote(p.Name) + ", " + hidden(p.Value)
	}
	return text.Quote(p.Name + equals + p.Value)
}

// showPair is showValue, and adds which variables of our environment the value contains.
func (s Server) showPair(p mcpclient.Pair, equals string) string {
	shown := s.showValue(p, equals)
	var names []string
	for _, reference := range variable().FindAllString(p.Value, -1) {
		if v := parseReference(reference); !v.isFolder() {
			names = append(names, text.Quote(v.name))
		}
	}
	if names != nil {
		shown += ", with " + strings.Join(names, " and ") + " of your environment"
	}
	return shown
}

// mentions reports whether the command line or another variable contains the name of p, as in sh -c
// '$NAME'.
func (s Server) mentions(p mcpclient.Pair) bool {
	texts := append([]string{s.Config.Command}, s.Config.Args...)
	for _, other := range slices.Concat(s.Config.Env, s.added) {
		if other != p {
			texts = append(texts, other.Value)
		}
	}
	return slices.ContainsFunc(texts, func(t string) bool {
		if runtime.GOOS == "windows" { // where the case does not matter
			return strings.Contains(strings.ToUpper(t), strings.ToUpper(p.Name))
		}
		return strings.Contains(t, p.Name)
	})
}

// hidden describes a value without showing it.
func hidden(value string) string {
	return "hidden, " + text.Count(len(value), "byte", "bytes")
}

// origin returns the beginning of a URL, such as https://example.com, which holds no secrets, or
// "".
func origin(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return ""
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host}).String()
}

// userInfo matches a URL with a user or password.
var userInfo = text.Pattern(`://[^/\s]*@`)

// reference is a reference in a configuration file that is resolved when the server starts:
// ${NAME}, ${NAME:-default}, ${env:NAME} or ${workspaceFolder}.
type reference struct {
	name, fallback string
	hasFallback    bool
}

var variable = text.Pattern(`\$\{[^}]*\}`)

func parseReference(written string) reference {
	name := strings.TrimPrefix(written[len("${"):len(written)-len("}")], "env:")
	var r reference
	r.name, r.fallback, r.hasFallback = strings.Cut(name, ":-")
	return r
}

// isFolder reports whether r refers to the folder of the file instead of the environment.
func (r reference) isFolder() bool { return r.name == "workspaceFolder" && !r.hasFallback }

// expand sets Start to Config with its variables replaced by values of our environment, which are
// among Start's secrets, and by folder, the root as the client spells it. It fails if a variable
// has no value.
func (s *Server) expand(folder string) error {
	var failed error
	c := s.Config
	s.replaced = nil
	replace := func(written string) string {
		r := parseReference(written)
		to := replacement{written: written, name: r.name, value: r.fallback}
		value, set := os.LookupEnv(r.name)
		switch {
		case r.isFolder():
			to.value = folder
		case set:
			to.value, to.ours = value, true
			c.Secrets = append(c.Secrets, value)
		case r.hasFallback:
		case strings.Contains(r.name, ":"):
			failed = cmp.Or(failed, fmt.Errorf("only an editor can ask for %s: "+
				"set an environment variable and write ${NAME} in the file", written))
		default:
			failed = cmp.Or(failed, fmt.Errorf("%s is not set in the environment", written))
		}
		s.replaced = append(s.replaced, to)
		return to.value
	}
	expand := func(written string) string {
		return variable().ReplaceAllStringFunc(written, replace)
	}
	c.Command, c.Dir, c.URL = expand(c.Command), expand(c.Dir), expand(c.URL)
	s.envPath = expand(s.EnvFile)
	c.Args, c.Env, c.Headers = slices.Clone(c.Args), slices.Clone(c.Env), slices.Clone(c.Headers)
	for i := range c.Args {
		c.Args[i] = expand(c.Args[i])
	}
	for _, pairs := range [][]mcpclient.Pair{c.Env, c.Headers} {
		for i := range pairs {
			pairs[i].Value = expand(pairs[i].Value)
		}
	}
	c.File = s.File
	s.Start = c
	return failed
}
