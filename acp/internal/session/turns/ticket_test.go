package turns

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/backend"
)

// A line is written as the senders of its tickets, after a sign for their place: ? waits, ! holds
// the queue, - is aside.
//
// Clauses W5, N7.
func TestNextOf(t *testing.T) {
	for line, want := range map[string]string{
		"":            "nobody",
		"?a ?b":       "0",
		"!a ?b":       "nobody", // one at a time
		"?a !b":       "nobody", // although a came first, while it was aside
		"-a ?b":       "1",
		"-a ?a":       "nobody",
		"-a ?a ?b ?a": "2",
		"-a -b ?a ?b": "nobody",
		"-a -b ?b ?c": "3",
		"-a ?a !b ?c": "nobody",
	} {
		var tickets []*Ticket[int]
		for one := range strings.FieldsSeq(line) {
			place := map[byte]place{'?': waiting, '!': holding, '-': aside}[one[0]]
			tickets = append(tickets, &Ticket[int]{sender: one[1:], place: place})
		}
		got, next := "nobody", nextOf(tickets)
		for i, at := range tickets {
			if at == next {
				got = fmt.Sprint(i)
			}
		}
		require.Equal(t, want, got, line)
	}
}

// A turn overlaps an earlier one that goes on if neither is exclusive. Requests behind it wait for
// turns that are ending, and not for those that go on.
//
// Clauses A32, W7.
func TestWhichTurnsOverlap(t *testing.T) {
	for i := range 8 {
		first, second, ending := i&1 > 0, i&2 > 0, i&4 > 0
		name := fmt.Sprintf("exclusive %t,%t ending %t", first, second, ending)
		synctest.Test(t, func(t *testing.T) {
			var queues Queues[int]
			prompt := func() PromptTicket[int] {
				at, err := queues.PromptTicket("s", "", New(t.Context()), 0)
				require.NoError(t, err)
				return at
			}
			earlier := prompt()
			_, err := earlier.AwaitTurn(first, 0)
			require.NoError(t, err)
			earlier.Release()
			if ending {
				earlier.turn.End(backend.ErrCancelled)
			}
			at, waits, overlaps := prompt(), true, false
			go func() {
				overlaps, _ = at.AwaitTurn(second, 0)
				waits = false
			}()
			synctest.Wait()
			require.Equal(t, first || second || ending, waits, name)
			require.Equal(t, !waits, overlaps, name)
			require.Equal(t, !waits || ending, at.Holds(), name)
			earlier.Answered()
			synctest.Wait()
			require.False(t, waits, name)
			at.Answered()
		})
	}
}
