package mcpclient_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/mcpclient"
)

// A server goes on only if nothing of its configuration has changed.
func TestM15_EachChangeOfAConfigurationMakesANewServer(t *testing.T) {
	w := open(t, folder(t))
	stdio := func() mcpclient.Config {
		c := self("s", "sdk")
		c.Args = []string{"one", "two"}
		c.Env = append(c.Env, mcpclient.Pair{Name: "A", Value: "a"})
		return c
	}
	const unchanged = "nothing"
	for name, change := range map[string]func(*mcpclient.Config){
		unchanged:       func(c *mcpclient.Config) { c.Headers = []mcpclient.Pair{} },
		"name":          func(c *mcpclient.Config) { c.Name = "other" },
		"args":          func(c *mcpclient.Config) { c.Args = []string{"one", "three"} },
		"fewer args":    func(c *mcpclient.Config) { c.Args = nil },
		"order of args": func(c *mcpclient.Config) { c.Args = []string{"two", "one"} },
		"env":           func(c *mcpclient.Config) { c.Env[len(c.Env)-1].Value = "b" },
		"name in env":   func(c *mcpclient.Config) { c.Env[len(c.Env)-1].Name = "B" },
		"dir":           func(c *mcpclient.Config) { c.Dir = folder(t) },
		"policy":        func(c *mcpclient.Config) { c.Policy.OnShrink = mcpclient.Notify },
	} {
		t.Run(name, func(t *testing.T) {
			f := with(t, mcpclient.Options{})
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
	one := func() mcpclient.Config { return remote("r", mcpclient.HTTP, "http://127.0.0.1:1/mcp") }
	for name, change := range map[string]func(*mcpclient.Config){
		"header":    func(c *mcpclient.Config) { c.Headers[0].Value = "Bearer another" },
		"url":       func(c *mcpclient.Config) { c.URL += "?x" },
		"transport": func(c *mcpclient.Config) { c.Transport = mcpclient.SSE },
	} {
		t.Run(name, func(t *testing.T) {
			f := with(t, mcpclient.Options{MaxRestarts: 1})
			f.change(w, one())
			_, err := f.List(t.Context())
			require.NoError(t, err)
			f.state(backend.ServerFailed)
			f.change(w, one())
			require.Equal(t, backend.ServerFailed, f.Servers()[0].State, "it goes on as it was")
			c := one()
			change(&c)
			f.change(w, c)
			require.Equal(t, backend.ServerIdle, f.Servers()[0].State, "it was never started")
		})
	}
}
