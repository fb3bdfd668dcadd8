// Package pace limits how fast a client is sent the history of a session that it loads.
package pace

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
	// burst is how many updates are sent without delay.
	burst = 512
	// catchUp is how many updates may be sent at once to catch up after a delay. It is small:
	// on a busy machine the client is late too, and must not get more updates while it has less
	// time.
	catchUp = 8
	// defaultRate is how many updates a second follow at most for a client that is not among
	// unlimited.
	defaultRate = 6_000
)

// unlimited are the clientInfo.name of clients that queue any number of updates until they
// have handled them, as their source says. A name that ends with "." stands for all names that
// begin with it. docs/editors.md lists them.
var unlimited = []string{
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

// IsUnlimited reports whether a client with this clientInfo.name queues any number of updates.
func IsUnlimited(name string) bool {
	return slices.ContainsFunc(unlimited, func(known string) bool {
		return name == known || strings.HasSuffix(known, ".") && strings.HasPrefix(name, known)
	})
}

// New returns a function that waits until the next update of a load may be sent, or its context
// ends. It is not safe for concurrent use. request is the context of the load. perSecond is how
// many updates a second follow at most: any number if it is negative, or if it is 0 and the client
// is unlimited.
//
// New limits the rate to what clients can handle. A pipe pushes back when a client does not read,
// but some clients read everything and queue what they have not handled yet: the Go SDK's client
// queues 1,024 notifications and then closes the connection. A client that has closed its end gets
// the rest at once, because the program must end soon.
func New(request context.Context, perSecond int, isUnlimited bool) (wait func(context.Context)) {
	if perSecond < 0 || perSecond == 0 && isUnlimited {
		return func(context.Context) {}
	}
	first := burst - catchUp // they do not wait for the limiter
	limiter := rate.NewLimiter(rate.Limit(cmp.Or(perSecond, defaultRate)), catchUp)
	return func(ctx context.Context) {
		if first > 0 {
			first--
		} else if !errors.Is(context.Cause(request), jsonrpc.ErrClosed) {
			_ = limiter.Wait(ctx)
		}
	}
}
