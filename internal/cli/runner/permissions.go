package runner

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/internal/permission"
	"github.com/acp-agent/acp-agent/internal/terminal"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
)

// Permissions answers permission requests. It refuses them if neither Yes nor User allows them.
type Permissions struct {
	// Show prints the requests and the answers.
	Show *terminal.Printer
	// Yes allows each request without asking.
	Yes bool
	// User is asked. May be nil, for nobody.
	User *terminal.Reader

	mu      sync.Mutex // held while a request is answered
	refused int
	would   []string // rules that would have allowed what was refused

	denying sync.Mutex
	denied  []string // rules that have refused something
}

// Answer answers a request, one at a time.
func (p *Permissions) Answer(
	ctx context.Context, r sdk.RequestPermissionRequest,
) (sdk.RequestPermissionResponse, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Show.Permission(r.ToolCall)
	option, how := p.choose(ctx, r.Options)
	p.Show.Answered(how)
	if option == nil || option.Kind != sdk.PermissionOptionKindAllowOnce &&
		option.Kind != sdk.PermissionOptionKindAllowAlways {
		p.refused++
		if rule := offered(r.Options); rule != "" && !slices.Contains(p.would, rule) {
			p.would = append(p.would, rule)
		}
	}
	outcome := sdk.NewRequestPermissionOutcomeCancelled()
	if option != nil {
		outcome = sdk.NewRequestPermissionOutcomeSelected(option.OptionId)
	}
	return sdk.RequestPermissionResponse{Outcome: outcome}, nil
}

// offered returns the rule that acp-agent offers to make, "" for none.
func offered(options []sdk.PermissionOption) string {
	for _, o := range options {
		if ours, ok := o.Meta[protocol.Ours].(map[string]any); ok {
			rule, _ := ours["rule"].(string)
			return text.Plain(rule)
		}
	}
	return ""
}

// Note notes which rule has refused a tool call, according to an update about it.
func (p *Permissions) Note(update json.RawMessage) {
	var call struct{ Title string }
	_ = json.Unmarshal(update, &call) // others have no title
	p.denying.Lock()
	defer p.denying.Unlock()
	if rule := permission.DeniedBy(call.Title); rule != "" && !slices.Contains(p.denied, rule) {
		p.denied = append(p.denied, rule)
	}
}

// choose returns the option that answers a request, nil to cancel it, and a text for the user.
func (p *Permissions) choose(
	ctx context.Context, options []sdk.PermissionOption,
) (*sdk.PermissionOption, string) {
	kind, how := sdk.PermissionOptionKindRejectOnce, "refused; use --yes to allow it"
	switch {
	case p.Yes:
		kind, how = sdk.PermissionOptionKindAllowOnce, "allowed once"
	case p.User != nil && len(options) > 0:
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
func (p *Permissions) ask(
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
	p.User.Forget()
	for {
		p.Show.Ask(strings.TrimSpace(question.String()) + ":")
		line, err := p.User.Line(ctx)
		if ctx.Err() != nil {
			return nil
		}
		p.Show.Typed()
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

// Err returns an error if a request was refused.
func (p *Permissions) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.denying.Lock()
	defer p.denying.Unlock()
	switch {
	case p.refused == 0 && len(p.denied) > 0:
		return fmt.Errorf("refused because of a deny rule: %s", strings.Join(p.denied, ", "))
	case p.refused == 0:
		return nil
	}
	hint := ""
	if p.User == nil && !p.Yes {
		hint = "; run it on a terminal to be asked, or with --yes to allow each once"
	}
	if len(p.would) > 0 {
		hint += "; this would allow it: --allow '" + strings.Join(p.would, "' --allow '") + "'"
	}
	requests := text.Count(p.refused, "request for permission was", "requests for permission were")
	return fmt.Errorf("%s refused%s", requests, hint)
}
