package gate

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/sessionstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Whatever comes in which order: phases do not go back, each update is buffered and released once,
// and only the last state is stored, at the latest with the activation.
func TestGate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		phase := Opening
		var held []sessionstore.Update
		var saved, stored string
		g := New(func(s string, _ context.Context, state []byte) error {
			require.Equal(t, "the session", s)
			stored = string(state)
			return nil
		})
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				require.Equal(t, phase, g.Phase())
				require.Len(t, g.Kinds(), min(len(held), 1))
			},
			"advance": func(t *rapid.T) {
				to := rapid.SampledFrom([]Phase{Releasing, Live, Closed}).Draw(t, "to")
				if phase == Opening {
					to = Closed
				}
				released := g.Advance(to)
				if to > phase {
					require.Equal(t, held, released)
					phase, held = to, nil
				}
			},
			"activate": func(t *rapid.T) {
				require.NoError(t, g.Activate(t.Context(), "the session"))
				phase = max(phase, Buffering)
				require.Equal(t, saved, stored)
			},
			"buffer": func(t *rapid.T) {
				u := sessionstore.Update{Kind: sessionstore.CurrentModeUpdate, Raw: []byte{byte(len(held))}}
				buffered, err := g.Buffer(u)
				require.NoError(t, err)
				require.Equal(t, phase < Releasing, buffered)
				if buffered {
					held = append(held, u)
				}
			},
			"save": func(t *rapid.T) {
				state := saved + "x"
				err := g.SaveState(t.Context(), []byte(state))
				if phase == Closed {
					require.ErrorIs(t, err, backend.ErrClosed)
					return
				}
				require.NoError(t, err)
				saved = state
				require.Equal(t, phase > Opening, saved == stored)
			},
			"wait": func(t *rapid.T) {
				ended, end := context.WithCancel(context.Background())
				end()
				if phase < Live {
					_, err := g.Wait(ended)
					require.ErrorIs(t, err, context.Canceled)
				} else if s, err := g.Wait(context.Background()); phase == Closed {
					require.ErrorIs(t, err, backend.ErrClosed)
				} else {
					require.NoError(t, err)
					require.Equal(t, "the session", s)
				}
			},
		})
	})
}

// Clause W11.
func TestBufferIsLimited(t *testing.T) {
	for size, most := range map[int]int{0: maxBuffered, maxBytes / 2: 2} {
		g, u := New[string](nil), sessionstore.Update{Raw: []byte(strings.Repeat("x", size))}
		for range most {
			buffered, err := g.Buffer(u)
			require.NoError(t, err)
			require.True(t, buffered)
		}
		_, err := g.Buffer(u)
		require.ErrorIs(t, err, backend.ErrTooManyUpdates)
		require.ErrorContains(t, err, "1,000")
		require.ErrorContains(t, err, "4 MiB")
	}
}
