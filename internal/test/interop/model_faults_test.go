package interop

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/internal/test/interop/modelserver"
)

// Wherever an answer breaks off, it is asked for again. A tool call that is not complete is not
// executed. What was shown of the text stays, with a mark.
//
// Clause B4.
func TestBrokenAnswers(t *testing.T) {
	t.Parallel()
	for _, api := range []string{"openai", "anthropic"} {
		for _, then := range []string{"", "end"} {
			t.Run(api+" "+then, func(t *testing.T) {
				t.Parallel()
				stage := onModelStage(t)
				address := stage.model.URL()
				if api == "openai" {
					address += "/v1"
				}
				stage.configure(t, fmt.Sprintf(`"baseURL": %q, "api": %q`, address, api))
				e := stage.edit(t)
				cwd := folder(t)
				session := stage.open(e, client.Setup{Roots: rootsOf(t, cwd)})
				session.setMode("accept_edits")
				again, marked := 0, 0
				for events, complete := 0, false; !complete; events++ {
					name := fmt.Sprint(events, ".txt")
					order := modelserver.Together(modelserver.Think("I write."), modelserver.Say("Writing."),
						modelserver.UseWith("write_file", fmt.Sprintf(`{"path":%q,"content":"x"}`, name)))
					said, turn, end := session.prompt("Write.", order.Failing(modelserver.Fault{Times: 1, Events: events, Then: then}))
					require.Equal(t, sdk.StopReasonEndTurn, end.StopReason)
					_, err := os.Stat(filepath.Join(cwd, name))
					text := chunks(said, `"agent_message_chunk"`)
					switch {
					case len(turn) == 3:
						again++
						if strings.Contains(text, "The answer starts over") {
							marked++
						} else {
							require.Contains(t, chunks(said, `"agent_thought_chunk"`), "Trying again")
						}
						require.NoError(t, err)
						require.Len(t, updates(said, `"status":"completed"`), 1)
					default: // everything of interest has arrived
						complete = true
						require.NoError(t, err)
						require.Contains(t, text, modelserver.Done)
					}
				}
				require.NotZero(t, again)
				require.GreaterOrEqual(t, marked, 3, "after the text, and the parts of the call")
			})
		}
	}
}

// Ten thousand deltas a second arrive in order.
//
// Clause B4.
func TestManyDeltas(t *testing.T) {
	t.Parallel()
	const n = 10_000
	stage := onModelStage(t)
	e := stage.edit(t)
	session := stage.open(e, client.Setup{Roots: rootsOf(t, folder(t))})
	said, _, end := session.prompt("Talk.", modelserver.Stamps(n, 100*time.Microsecond))
	require.Equal(t, sdk.StopReasonEndTurn, end.StopReason)
	last, count := 0, 0
	for text := chunks(said, `"agent_message_chunk"`); text != ""; count++ {
		var stamp int
		_, err := fmt.Sscanf(text, "at %d", &stamp)
		require.NoError(t, err)
		require.Greater(t, stamp, last)
		last, text = stamp, text[len(fmt.Sprintf("at %d ", stamp)):]
	}
	require.Equal(t, n, count)
}
