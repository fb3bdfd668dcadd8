package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/mcp"
	mcpclient "github.com/acp-agent/acp-agent/internal/mcp/client"
	"github.com/acp-agent/acp-agent/internal/runner"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/usage"
	"github.com/acp-agent/acp-agent/workspace"
)

// examineServers starts the MCP servers of these files, as a session in the current directory does,
// and asks each what it offers.
func (set *settings) examineServers(ctx context.Context, files []string) []finding {
	if len(files) == 0 {
		return nil
	}
	servers, err := runner.ReadServers(files)
	var listings []mcp.Listing
	if err == nil {
		listings, err = set.listServers(ctx, servers)
	}
	if err != nil {
		return []finding{judge("MCP servers", "", err)}
	}
	var findings []finding
	for _, l := range listings {
		f := finding{"MCP server " + text.Name(l.Name), works, fmt.Sprintf("%s, %s",
			cmp.Or(l.Product, "it has no name"), text.Count(len(l.Tools), "tool", "tools"))}
		if l.Err != nil {
			f.State, f.Text = broken, strings.TrimPrefix(l.Err.Error(), f.Subject+": ")
		}
		findings = append(findings, f)
	}
	return findings
}

// listServers starts MCP servers, and returns what each offers or why it does not answer.
func (set *settings) listServers(
	ctx context.Context, servers []sdk.McpServer,
) ([]mcp.Listing, error) {
	const patience = 20 * time.Second
	dirs, err := usage.Absolute(".")
	if err != nil {
		return nil, err
	}
	options, err := set.workspace()
	if err != nil {
		return nil, err
	}
	w, err := workspace.Open(ctx, workspace.RootsFrom(dirs.At(0), workspace.Dirs{}), options)
	if err != nil {
		return nil, usage.WithFlagNames(err, "the current directory", "dir")
	}
	defer w.Close()
	configs := make([]mcpclient.Config, len(servers))
	for i, s := range servers {
		configs[i] = clientConfig(s)
		policy := set.mcpPolicy(configs[i].Name)
		configs[i].Policy = mcp.Policy{Templates: policy.Templates, Sandbox: policy.Sandbox}
	}
	all := mcpclient.NewSet(mcpclient.NewStarter(len(configs)), mcpclient.Options{
		Version: ownVersion().Number, Withheld: set.withheld(), Wait: patience,
	})
	defer all.Close(ctx)
	change, err := all.Prepare(w, configs)
	if err != nil {
		return nil, err
	}
	change.Commit(nil, nil) // nobody is asked anything
	results, err := all.List(ctx)
	if err != nil {
		return nil, err
	}
	var listings []mcp.Listing
	for l := range results {
		listings = append(listings, l)
	}
	return listings, nil
}

// clientConfig returns the configuration of a server of a file.
func clientConfig(s sdk.McpServer) mcpclient.Config {
	var c mcpclient.Config
	header := func(headers []sdk.HttpHeader) {
		for _, h := range headers {
			c.Headers = append(c.Headers, mcpclient.Pair{Name: h.Name, Value: h.Value})
		}
	}
	switch {
	case s.Http != nil:
		c = mcpclient.Config{Name: s.Http.Name, Transport: mcp.HTTP, URL: s.Http.Url}
		header(s.Http.Headers)
	case s.Sse != nil:
		c = mcpclient.Config{Name: s.Sse.Name, Transport: mcp.SSE, URL: s.Sse.Url}
		header(s.Sse.Headers)
	default:
		c = mcpclient.Config{Name: s.Stdio.Name, Transport: mcp.Stdio,
			Command: s.Stdio.Command, Args: s.Stdio.Args}
		for _, v := range s.Stdio.Env {
			c.Env = append(c.Env, mcpclient.Pair{Name: v.Name, Value: v.Value})
		}
	}
	return c
}
