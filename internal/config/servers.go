package config

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/acp-agent/acp-agent/acp/mcp"
	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/internal/sandbox"
	"github.com/acp-agent/acp-agent/internal/sandbox/hosts"
)

// Server says what an MCP server may do.
type Server struct {
	Roots     *onOff       `json:"roots"`
	OnShrink  keepOnShrink `json:"onShrink"`
	Templates onOff        `json:"templates"`
	// CallTimeout is how long a call may take without an answer or progress.
	CallTimeout callTimeout `json:"callTimeout"`
	ClientID    string      `json:"clientId"`
	// ClientSecretEnv names the environment variable with the client's secret.
	ClientSecretEnv string `json:"clientSecretEnv"`

	Restriction
}

// The values in the configuration for members of [mcp.Policy].
type (
	onOff        bool
	keepOnShrink bool
	callTimeout  time.Duration
	sandboxWarn  bool // a member of [sandbox.Settings]
)

// MCPPolicy returns the policy for the MCP server called name.
func (c Config) MCPPolicy(name string) mcp.Policy {
	s, configured := c.MCPServers[name]
	if !configured {
		s = c.MCPServers["*"]
	}
	return mcp.Policy{
		Roots: (*bool)(s.Roots), KeepOnShrink: bool(s.OnShrink), Templates: bool(s.Templates),
		CallTimeout: time.Duration(s.CallTimeout), Sandbox: s.Settings(),
		ClientID: s.ClientID, ClientSecret: os.Getenv(s.ClientSecretEnv),
		ClientDocument: clientDocument,
	}
}

// parseCallTimeout parses a time such as 30m.
func parseCallTimeout(s string) (callTimeout, error) {
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("%q is not a time such as 90s, 30m or 2h", s)
	}
	return callTimeout(d), nil
}

// Restriction restricts what acp-agent starts.
type Restriction struct {
	Sandbox         *sandbox.Mode `json:"sandbox"`
	SandboxWrite    []string      `json:"sandboxWrite"`
	SandboxRead     []string      `json:"sandboxRead"`
	SandboxPorts    []uint16      `json:"sandboxPorts"` // nil if it is not given
	SandboxHosts    []hosts.Host  `json:"sandboxHosts"` // the same
	SandboxFallback sandboxWarn   `json:"sandboxFallback"`
}

// Settings returns what is configured.
func (c Restriction) Settings() sandbox.Settings {
	s := sandbox.Settings{Write: c.SandboxWrite, Read: c.SandboxRead,
		Ports:    hosts.Ports{Limited: c.SandboxPorts != nil, List: c.SandboxPorts},
		Hosts:    hosts.Hosts{Limited: c.SandboxHosts != nil, List: c.SandboxHosts},
		Optional: bool(c.SandboxFallback)}
	override(&s.Mode, c.Sandbox)
	return s
}

// resolvePaths makes the paths, and those in more, absolute, except for those that begin with a
// variable of the started program.
func (c Restriction) resolvePaths(file string, more ...string) (err error) {
	for _, list := range [][]string{c.SandboxWrite, c.SandboxRead, more} {
		for i := range list {
			if err == nil && !strings.HasPrefix(list[i], "$") {
				list[i], err = ResolvePath(file, list[i])
			}
		}
	}
	return err
}

// clientDocument is where the document about acp-agent is published, docs/mcp-client.json. Its
// address is acp-agent's id at authorization servers that register no clients.
const clientDocument = "https://acp-agent.github.io/acp-agent/mcp-client.json"

// check checks what decoding does not.
func (s Server) check(name string) error {
	switch {
	case name == "*" && s.ClientID != "":
		return errors.New("clientId is for one server: give it under the server's name")
	case s.ClientSecretEnv != "" && s.ClientID == "":
		return errors.New("clientSecretEnv needs a clientId")
	case s.ClientSecretEnv != "" && !process.IsVariable(s.ClientSecretEnv):
		return errors.New("clientSecretEnv must be the name of an environment variable that has " +
			"the secret, not the secret itself")
	}
	return nil
}
