package process_test

import (
	"context"
	"fmt"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/process"
)

// What left the group may write on without end.
func TestW9_AnEscapeeThatFloodsHoldsUpNobody(t *testing.T) {
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("setsid is not installed")
	}
	for _, stream := range []string{"1", "2"} {
		script := fmt.Sprintf(`setsid sh -c 'trap "" TERM; while :; do echo flood >&%s || exit; done' & cat`, stream)
		for name, closed := range map[string]func(*process.Process){
			"closed": func(p *process.Process) { _ = p.Stdout().Close() },
			"unread": func(*process.Process) {},
		} {
			t.Run(stream+"/"+name, func(t *testing.T) {
				p, err := process.Start(t.Context(), process.Command{Path: "sh", Args: []string{"-c", script}, Name: "escape"}, process.Options{})
				require.NoError(t, err)
				closed(p)
				ctx, cancel := context.WithTimeout(t.Context(), patience/2)
				defer cancel()
				require.NoError(t, p.Stop(ctx))
				require.NoError(t, ctx.Err(), "Stop gave up")
				<-p.Done()
				_ = p.Stdout().Close()
			})
		}
	}
}
