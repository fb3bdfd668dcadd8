package process

import (
	"context"
	"fmt"
	"time"
)

// lastWait is how long a process that was sent SIGKILL is waited for. Only one that hangs
// in the kernel takes that long.
const lastWait = time.Second

// Stop ends the child and its group and waits for them: it closes stdin, after a grace sends
// SIGTERM, after another SIGKILL. When ctx ends it goes on to SIGKILL at once. How the child ended
// is what [Process.Wait] says; Stop fails only if it cannot be ended. It may be called at any
// time and more than once.
func (p *Process) Stop(ctx context.Context) error {
	_ = p.stdin.Close()
	if p.endsWithin(ctx, p.options.Grace) {
		return nil
	}
	p.group.terminate()
	if p.endsWithin(ctx, p.options.TermGrace) {
		return nil
	}
	p.group.kill()
	if p.endsWithin(context.WithoutCancel(ctx), lastWait+p.options.TermGrace+p.options.Grace) {
		return nil
	}
	return fmt.Errorf("%s (process %d) does not end, not even killed", p.name, p.pid)
}

func (p *Process) endsWithin(ctx context.Context, grace time.Duration) bool {
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.done:
		return true
	case <-ctx.Done():
	case <-timer.C:
	}
	return false
}
