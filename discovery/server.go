package discovery

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// Transport is how a server is spoken to.
type Transport string

// The transports.
const (
	Stdio Transport = "stdio"
	HTTP  Transport = "http"
	SSE   Transport = "sse"
)

// Server is the configuration of an MCP server as it was found. Nothing in it was expanded: ${VAR} and ${input:x} are
// left as written. It was not started, and being found is no reason to.
type Server struct {
	Transport Transport `json:"transport"`
	// Command and Args start a Stdio server, in Cwd if the configuration says so.
	Command string   `json:"command,omitempty"`
	Args    []string `json:"args,omitempty"`
	Cwd     string   `json:"cwd,omitempty"`
	// Env are variables of its environment.
	Env Secrets `json:"env,omitzero"`
	// URL is where another server is.
	URL Address `json:"url,omitempty"`
	// Headers go with each request to it.
	Headers Secrets `json:"headers,omitzero"`
	// Inputs are the ids of values that the editor would ask a person for.
	Inputs []string `json:"inputs,omitempty"`
}

// String is the command line, or the address. It shows no secret.
func (s *Server) String() string {
	if s.Transport != Stdio {
		return s.URL.String()
	}
	words := append([]string{s.Command}, s.Args...)
	for i, w := range words {
		if w == "" || strings.ContainsAny(w, " \"'") || visible(w) != w {
			words[i] = fmt.Sprintf("%q", w)
		}
	}
	return strings.Join(words, " ")
}

// Secrets are values by name that prints leave out: String, JSON, fmt and slog show the names. It is immutable.
type Secrets struct{ values map[string]string }

// Names are the names, sorted.
func (s Secrets) Names() []string { return slices.Sorted(maps.Keys(s.values)) }

// Value is the value of a name.
func (s Secrets) Value(name string) (string, bool) {
	v, ok := s.values[name]
	return v, ok
}

// IsZero reports whether there are none.
func (s Secrets) IsZero() bool { return len(s.values) == 0 }

// String shows the names.
func (s Secrets) String() string { return strings.Join(s.Names(), " ") }

// Format shows the names, whatever the verb.
func (s Secrets) Format(f fmt.State, _ rune) { fmt.Fprint(f, s.String()) }

// LogValue shows the names.
func (s Secrets) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalJSON encodes the names as an array.
func (s Secrets) MarshalJSON() ([]byte, error) { return json.Marshal(s.Names()) }

// Address is a URL that prints leave the secrets out of: the password, and the values of the query. Convert it to a
// string for the URL itself.
type Address string

// String is the URL without its secrets.
func (a Address) String() string {
	u, err := url.Parse(string(a))
	if err != nil {
		head, _, _ := strings.Cut(string(a), "?")
		if scheme, rest, ok := strings.Cut(head, "://"); ok {
			return scheme + "://" + rest[strings.LastIndexByte(rest, '@')+1:]
		}
		return head
	}
	if _, secret := u.User.Password(); secret {
		u.User = url.UserPassword(u.User.Username(), "xxxxx")
	}
	if u.RawQuery != "" {
		pairs := strings.Split(u.RawQuery, "&")
		for i, pair := range pairs {
			if key, value, ok := strings.Cut(pair, "="); ok && value != "" {
				pairs[i] = key + "=xxxxx"
			}
		}
		u.RawQuery = strings.Join(pairs, "&")
	}
	return u.String()
}

// Format shows String, whatever the verb.
func (a Address) Format(f fmt.State, _ rune) { fmt.Fprint(f, a.String()) }

// MarshalJSON encodes String.
func (a Address) MarshalJSON() ([]byte, error) { return json.Marshal(a.String()) }
