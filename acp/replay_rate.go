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

// replayRate returns the limit for a load, in updates a second; negative for none.
func (c *connection) replayRate() int {
	chosen := c.agent.options.ReplayRate
	if chosen == 0 && c.clientCapabilities().unlimited {
		return -1
	}
	return cmp.Or(chosen, defaultReplayRate)
}

// replayRate limits the rate of a load's replay to what clients can handle. A pipe pushes back when
// a client does not read, but some clients read everything and queue what they have not handled
// yet: the Go SDK's client queues 1,024 notifications and then closes the connection.
type replayRate struct {
	request context.Context
	first   int           // updates that do not wait for the limiter
	limiter *rate.Limiter // nil without a limit
}

// newReplayRate returns the limit of a load whose request has the context request, in updates a
// second. There is no limit if perSecond is negative.
func newReplayRate(request context.Context, perSecond int) *replayRate {
	if perSecond < 0 {
		return &replayRate{request: request}
	}
	return &replayRate{
		request, replayBurst - replayCatchUp, rate.NewLimiter(rate.Limit(perSecond), replayCatchUp),
	}
}

// wait returns when the next update may be sent, or ctx ended. A client that has closed its end
// gets the rest at once, because the program must end soon. It is not safe for concurrent use.
func (r *replayRate) wait(ctx context.Context) {
	if r == nil || r.limiter == nil || errors.Is(context.Cause(r.request), jsonrpc.ErrClosed) {
		return
	}
	if r.first > 0 {
		r.first--
		return
	}
	_ = r.limiter.Wait(ctx)
}
