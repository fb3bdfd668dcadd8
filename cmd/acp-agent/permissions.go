package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/internal/terminal"
	"github.com/acp-agent/acp-agent/internal/text"
)

// permissions answers permission requests: it asks the user on a terminal, allows them once with
// --yes, and refuses them otherwise.
type permissions struct {
	show *terminal.Printer // nil to show nothing
	yes  bool              // allow without asking
	user *terminal.Typist  // nil to ask nobody

	mu      sync.Mutex // held while a request is answered
	refused int
}

// newPermissions returns the permissions for a run. Questions are asked where the user sees them:
// on standard error if show prints elsewhere.
func newPermissions(s streams, show *terminal.Printer, r runFlags) *permissions {
	p := &permissions{show: show, yes: r.yes}
	switch {
	case r.json:
		p.show = nil
		return p
	case r.yes || !s.interactive():
		return p
	case terminal.Is(s.out):
	case terminal.Is(s.err):
		p.show = terminal.NewPrinter(s.err)
	default:
		return p
	}
	p.user = terminal.NewTypist(s.in.(*os.File))
	return p
}

// answer answers a request, one at a time.
func (p *permissions) answer(
	ctx context.Context, r sdk.RequestPermissionRequest,
) (sdk.RequestPermissionResponse, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.show != nil {
		p.show.Permission(r.ToolCall)
	}
	option, how := p.choose(ctx, r.Options)
	if p.show != nil {
		p.show.Answered(how)
	}
	if option == nil || !allowing(option.Kind) {
		p.refused++
	}
	outcome := sdk.NewRequestPermissionOutcomeCancelled()
	if option != nil {
		outcome = sdk.NewRequestPermissionOutcomeSelected(option.OptionId)
	}
	return sdk.RequestPermissionResponse{Outcome: outcome}, nil
}

func allowing(kind sdk.PermissionOptionKind) bool {
	return kind == sdk.PermissionOptionKindAllowOnce || kind == sdk.PermissionOptionKindAllowAlways
}

// choose returns the option that answers a request, or nil to cancel it, and a text that tells the
// user.
func (p *permissions) choose(
	ctx context.Context, options []sdk.PermissionOption,
) (*sdk.PermissionOption, string) {
	kind, how := sdk.PermissionOptionKindRejectOnce, "refused; use --yes to allow it"
	switch {
	case p.yes:
		kind, how = sdk.PermissionOptionKindAllowOnce, "allowed once"
	case p.user != nil && len(options) > 0:
		if chosen := p.ask(ctx, options); chosen != nil {
			return chosen, text.Line(text.Plain(chosen.Name), 80)
		}
		how = "not answered"
	}
	i := slices.IndexFunc(options, func(o sdk.PermissionOption) bool { return o.Kind == kind })
	if i < 0 {
		return nil, "cancelled: the agent does not offer to allow or refuse it once"
	}
	return &options[i], how
}

// ask lets the user choose. It returns nil if ctx or the input ends.
func (p *permissions) ask(
	ctx context.Context, options []sdk.PermissionOption,
) *sdk.PermissionOption {
	keys := make([]string, len(options))
	var question strings.Builder
	for i, o := range options {
		keys[i] = map[sdk.PermissionOptionKind]string{
			sdk.PermissionOptionKindAllowOnce: "y", sdk.PermissionOptionKindAllowAlways: "a",
			sdk.PermissionOptionKindRejectOnce: "n",
		}[o.Kind]
		if keys[i] == "" || slices.Contains(keys[:i], keys[i]) {
			keys[i] = strconv.Itoa(i + 1)
		}
		fmt.Fprintf(&question, "[%s] %s  ", keys[i], text.Line(text.Plain(o.Name), 60))
	}
	p.user.Forget()
	for {
		p.show.Ask(strings.TrimSpace(question.String()) + ":")
		line, err := p.user.Read(ctx)
		if ctx.Err() != nil {
			return nil
		}
		p.show.Typed()
		if i := chosen(line, keys, options); i >= 0 {
			return &options[i]
		}
		if err != nil {
			return nil
		}
	}
}

// chosen returns the index of the option that the user typed, or -1. An option is typed as its key,
// its name, or yes, no or always.
func chosen(line string, keys []string, options []sdk.PermissionOption) int {
	line = strings.ToLower(line)
	if line == "" {
		return -1
	}
	if slices.Contains([]string{"yes", "no", "always"}, line) {
		line = line[:1]
	}
	if i := slices.Index(keys, line); i >= 0 {
		return i
	}
	return slices.IndexFunc(options, func(o sdk.PermissionOption) bool {
		return strings.EqualFold(o.Name, line)
	})
}

// err returns an error if a request was refused.
func (p *permissions) err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refused == 0 {
		return nil
	}
	hint := ""
	if p.user == nil && !p.yes {
		hint = "; run it on a terminal to be asked, or with --yes to allow each once"
	}
	requests := text.Count(p.refused, "request for permission was", "requests for permission were")
	return fmt.Errorf("%s refused%s", requests, hint)
}
