package mcpservers_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/mcpservers"
	"github.com/acp-agent/acp-agent/acp/runtime"
)

// A server goes on only if nothing of its configuration has changed.
func TestM15_EachChangeOfAConfigurationMakesANewServer(t *testing.T) {
	w := open(t, folder(t))
	stdio := func() mcpservers.Config {
		c := self("s", "sdk")
		c.Args = []string{"one", "two"}
		c.Env = append(c.Env, mcpservers.Pair{Name: "A", Value: "a"})
		return c
	}
	const unchanged = "nothing"
	for name, change := range map[string]func(*mcpservers.Config){
		unchanged:       func(c *mcpservers.Config) { c.Headers = []mcpservers.Pair{} },
		"name":          func(c *mcpservers.Config) { c.Name = "other" },
		"args":          func(c *mcpservers.Config) { c.Args = []string{"one", "three"} },
		"fewer args":    func(c *mcpservers.Config) { c.Args = nil },
		"order of args": func(c *mcpservers.Config) { c.Args = []string{"two", "one"} },
		"env":           func(c *mcpservers.Config) { c.Env[len(c.Env)-1].Value = "b" },
		"name in env":   func(c *mcpservers.Config) { c.Env[len(c.Env)-1].Name = "B" },
		"dir":           func(c *mcpservers.Config) { c.Dir = folder(t) },
		"policy":        func(c *mcpservers.Config) { c.Policy.OnShrink = mcpservers.Notify },
	} {
		t.Run(name, func(t *testing.T) {
			f := with(t, mcpservers.Options{})
			f.change(w, stdio())
			before := f.where("s").PID
			c := stdio()
			change(&c)
			f.change(w, c)
			after := f.where(f.Servers()[0].Prefix).PID
			require.Equal(t, name == unchanged, before == after)
		})
	}
}

func TestM15_EachChangeOfARemotesConfigurationMakesANewServer(t *testing.T) {
	w := open(t, folder(t))
	one := func() mcpservers.Config { return remote("r", mcpservers.HTTP, "http://127.0.0.1:1/mcp") }
	for name, change := range map[string]func(*mcpservers.Config){
		"header":    func(c *mcpservers.Config) { c.Headers[0].Value = "Bearer another" },
		"url":       func(c *mcpservers.Config) { c.URL += "?x" },
		"transport": func(c *mcpservers.Config) { c.Transport = mcpservers.SSE },
	} {
		t.Run(name, func(t *testing.T) {
			f := with(t, mcpservers.Options{MaxRestarts: 1})
			f.change(w, one())
			_, err := f.List(t.Context())
			require.NoError(t, err)
			f.state(runtime.ServerFailed)
			f.change(w, one())
			require.Equal(t, runtime.ServerFailed, f.Servers()[0].State, "it goes on as it was")
			c := one()
			change(&c)
			f.change(w, c)
			require.Equal(t, runtime.ServerIdle, f.Servers()[0].State, "it was never started")
		})
	}
}
