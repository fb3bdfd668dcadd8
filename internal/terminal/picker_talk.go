package terminal

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/acp-agent/acp-agent/internal/text"
)

// talk continues a session, once the user has chosen a model if there are several. Then the picker
// ends.
func (p *picker) talk(ctx context.Context, session Session, fork bool) error {
	if p.notice = session.Obstacle(); p.notice != "" {
		return nil
	}
	models := session.Models()
	if len(models) == 0 {
		return p.talkTo(ctx, session, fork, "")
	}
	p.ask = &pickerQuestion{
		text: "Which model (" + strings.Join(models, ", ") + ")? ", isLine: true,
		answered: func(ctx context.Context, name string) error {
			switch {
			case name == "":
				return nil
			case !slices.Contains(models, name):
				p.notice = "there is no model " + text.Name(name)
				return nil
			}
			return p.talkTo(ctx, session, fork, name)
		},
	}
	return nil
}

// talkTo shows a session and continues it with a model, "" if there is no choice.
func (p *picker) talkTo(ctx context.Context, session Session, fork bool, model string) error {
	err := p.outside(func() error {
		if err := p.show(ctx, session); err != nil && !errors.Is(err, errStopped) {
			return err
		}
		return session.Chat(ctx, fork, model)
	})
	return cmp.Or(err, errPicked)
}
