package mcpclient

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"reflect"
	"strings"
	"time"

	"github.com/acp-agent/acp-agent/acp/backend"
)

// Transport is how a server is reached.
type Transport string

// The transports.
const (
	Stdio Transport = "stdio"
	HTTP  Transport = "http"
	SSE   Transport = "sse"
)

// Pair is a name and its value, which may be a secret.
type Pair struct{ Name, Value string }

// Config is a server as the client configured it (W12), and the user's policy for it. It holds secrets, and prints and
// encodes without them.
type Config struct {
	// Name is the client's name for it, for people. Names need not be distinct.
	Name      string
	Transport Transport
	// Command, Args and Env are for stdio.
	Command string
	Args    []string
	Env     []Pair
	// Dir is where a stdio server runs, "" for the session's cwd (M4).
	Dir string
	// URL and Headers are for http and sse.
	URL     string
	Headers []Pair
	// Secrets are values in Args or URL that no log and no error may hold. Those of Env and Headers need not be repeated.
	Secrets []string
	// Policy is the user's, from their own configuration, never from the client or a repository.
	Policy Policy
}

// Policy says what a server is given. The zero value is the default.
type Policy struct {
	// Roots says whether it may ask for the roots. Default: stdio and loopback servers may (M2).
	Roots Switch
	// OnShrink says what happens to a server that knows a root which the session no longer has. Default: Restart.
	OnShrink OnShrink
	// Templates says whether ${cwd}, ${roots}, ${root:N}, ${roots:json} and ${roots:uris} are replaced in Args
	// and Env (M14). Default: they are not.
	Templates Switch
	// ReadOnly says whether tools that claim to be read-only are called without asking. Default: Ask.
	ReadOnly ReadOnly
	// SettleAfterRoots is how long after its last answered roots/list it is ready. Default 100 ms.
	SettleAfterRoots time.Duration
	// SettleWithoutRoots is how long after initialized one that does not ask is ready. Default 500 ms.
	SettleWithoutRoots time.Duration
}

// Switch is a choice with a default.
type Switch int

// The positions of a Switch.
const (
	Default Switch = iota
	On
	Off
)

// OnShrink is what happens to a server when its session loses a root.
type OnShrink int

// What happens on a loss.
const (
	// Restart ends a stdio server and starts it anew, and connects to others anew: some keep a root they were once told.
	Restart OnShrink = iota
	// Notify sends it the notification alone.
	Notify
)

// ReadOnly is how tools are called that claim to change nothing.
type ReadOnly int

// How such tools are called.
const (
	// Ask asks, as for every tool.
	Ask ReadOnly = iota
	// Allow believes the claim.
	Allow
)

// rootsOn reports whether the server may ask for roots (M2).
func (c Config) rootsOn() bool {
	switch c.Policy.Roots {
	case On:
		return true
	case Off:
		return false
	}
	return c.Transport == Stdio || loopback(c.URL)
}

func loopback(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	host := u.Hostname()
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// equal reports whether a server of one configuration can go on under the other.
func (c Config) equal(other Config) bool {
	same := func(a, b []Pair) bool { return len(a) == 0 && len(b) == 0 || reflect.DeepEqual(a, b) }
	args := len(c.Args) == 0 && len(other.Args) == 0 || reflect.DeepEqual(c.Args, other.Args)
	return c.Name == other.Name && c.Transport == other.Transport && c.Command == other.Command && c.URL == other.URL && c.Dir == other.Dir &&
		c.Policy == other.Policy && args && same(c.Env, other.Env) && same(c.Headers, other.Headers)
}

// secrets are the values that no log and no error may hold.
func (c Config) secrets() []string {
	all := append([]string(nil), c.Secrets...)
	for _, p := range append(append([]Pair{}, c.Env...), c.Headers...) {
		all = append(all, p.Value)
		all = append(all, strings.Fields(p.Value)...) // a server may echo the token of "Bearer TOKEN" alone
	}
	if u, err := url.Parse(c.URL); err == nil && c.URL != "" {
		all = append(all, u.RawQuery, u.User.String())
		if password, ok := u.User.Password(); ok {
			all = append(all, password)
		}
		for _, values := range u.Query() {
			all = append(all, values...)
		}
	}
	return all
}

// String is the name and the transport.
func (c Config) String() string { return fmt.Sprintf("%s (%s)", c.Name, c.Transport) }

// GoString is String.
func (c Config) GoString() string { return c.String() }

// LogValue implements [slog.LogValuer].
func (c Config) LogValue() slog.Value { return slog.StringValue(c.String()) }

// MarshalJSON encodes the name and the transport.
func (c Config) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Name      string    `json:"name"`
		Transport Transport `json:"transport"`
	}{c.Name, c.Transport})
}

// Host is what a set needs of its session. A [backend.Host] is one.
type Host interface {
	// Client asks for permission.
	backend.Client
	// Updates show what happens outside of calls.
	backend.Updates
}
