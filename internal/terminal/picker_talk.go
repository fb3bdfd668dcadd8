package terminal

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/acp-agent/acp-agent/internal/text"
)

// talk asks for prompts and continues a session with them. Then the picker ends.
func (p *picker) talk(ctx context.Context, session Session, way Way) error {
	c := session.Continue(way)
	if p.notice = c.Obstacle; p.notice != "" {
		return nil
	}
	if len(c.Models) > 0 {
		p.ask = &pickerQuestion{
			text: "Which model (" + strings.Join(c.Models, ", ") + ")? ", isLine: true,
			answered: func(ctx context.Context, name string) error {
				switch {
				case name == "":
					return nil
				case !slices.Contains(c.Models, name):
					p.notice = "there is no model " + text.Name(name)
					return nil
				}
				return p.talkTo(ctx, session, c, name)
			},
		}
		return nil
	}
	return p.talkTo(ctx, session, c, "")
}

// talkTo continues a session with a model, "" if there is no choice.
func (p *picker) talkTo(ctx context.Context, session Session, c Conversation, model string) error {
	err := p.outside(func() error {
		if err := p.show(ctx, session); err != nil && !errors.Is(err, errStopped) {
			return err
		}
		return p.screen.Chat(ctx, func(ctx context.Context, prompt string) error {
			return c.Send(ctx, model, prompt)
		})
	})
	return cmp.Or(err, errPicked)
}
