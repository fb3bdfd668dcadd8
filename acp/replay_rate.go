package acp

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"golang.org/x/time/rate"

	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
)

const (
	// replayBurst is how many updates of a load are sent without delay.
	replayBurst = 512
	// replayCatchUp is how many updates may be sent at once to catch up after a delay. It is small:
	// on a busy machine the client is late too, and must not get more updates while it has less
	// time.
	replayCatchUp = 8
	// defaultReplayRate is how many updates a second follow at most for a client that is not among
	// unlimitedClients.
	defaultReplayRate = 6_000
)

// unlimitedClients are the clientInfo.name of clients that queue any number of updates until they
// have handled them, as their source says. A name that ends with "." stands for all names that
// begin with it. docs/editors.md lists them.
var unlimitedClients = []string{
	"acpx",               // openclaw/acpx, src/client.ts: a chain of promises
	"Agentic.nvim",       // carlos-algms/agentic.nvim, lua/agentic/acp/acp_client.lua: Neovim's queue
	"agent-shell",        // xenodium/agent-shell, agent-shell.el: a list
	"AionUi",             // iOfficeAI/AionCore, pull request 471: unbounded channels of the Rust SDK
	"CodeCompanion.nvim", // olimorris/codecompanion.nvim, lua/codecompanion/adapters/acp
	"JetBrains.",         // then the product. Copilot CLI and Codex record it; coroutines
	"toad",               // batrachianai/toad, src/toad/acp/agent.py: a task for each message
	"vscode-acp-client",  // formulahendry/vscode-acp, src/core/ConnectionManager.ts: promises
	"zed",                // zed-industries/zed, crates/agent_servers/src/acp.rs: unbounded channels
}

// isUnlimited reports whether the client called name is among unlimitedClients.
func isUnlimited(name string) bool {
	return slices.ContainsFunc(unlimitedClients, func(known string) bool {
		return name == known || strings.HasSuffix(known, ".") && strings.HasPrefix(name, known)
	})
}

// pace returns a function that waits until the next update of a load may be sent, or its context
// ends. It is not safe for concurrent use. request is the context of the load. pace limits the rate
// to what clients can handle. A pipe pushes back when a client does not read, but some clients read
// everything and queue what they have not handled yet: the Go SDK's client queues 1,024
// notifications and then closes the connection. A client that has closed its end gets the rest at
// once, because the program must end soon.
func (c *connection) pace(request context.Context) (wait func(context.Context)) {
	perSecond := c.adapter.options.ReplayRate
	if perSecond < 0 || perSecond == 0 && c.clientCapabilities().unlimited {
		return func(context.Context) {}
	}
	first := replayBurst - replayCatchUp // they do not wait for the limiter
	limiter := rate.NewLimiter(rate.Limit(cmp.Or(perSecond, defaultReplayRate)), replayCatchUp)
	return func(ctx context.Context) {
		if first > 0 {
			first--
		} else if !errors.Is(context.Cause(request), jsonrpc.ErrClosed) {
			_ = limiter.Wait(ctx)
		}
	}
}
