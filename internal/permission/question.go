package permission

import "context"

type actionKey struct{}

// Asking returns a context for asking the user about an action of acp-agent's own.
func Asking(ctx context.Context, a Action) context.Context {
	return context.WithValue(ctx, actionKey{}, a)
}

// Asked returns the action that is asked about. ok is false for a request of an agent.
func Asked(ctx context.Context) (a Action, ok bool) {
	a, ok = ctx.Value(actionKey{}).(Action)
	return a, ok
}
