package text_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/text"
)

func TestFirstHidden(t *testing.T) {
	for _, s := range []string{
		"", "plain\ttext\r\nof two lines", "Grüße, 漢字", "10\u00a0000", "❤️\u200d🔥 👩🏽\u200d💻 1️⃣ ✈︎ ‼️",
		"می\u200cخواهم", "क्\u200dष", "\ufffd",
	} {
		r, hidden := text.FirstHidden(s)
		require.False(t, hidden, "%q: %U", s, r)
		require.Equal(t, s, text.Unhide(s))
	}
	for s, want := range map[string]string{
		"a\u200bb":           "a\ufffdb",      // zero width space
		"a\u200db":           "a\ufffdb",      // joiners between letters that do not need them
		"é\u200c\u200d":      "é\ufffd\ufffd", // which can encode anything
		"❤\ufe0f\ufe0f":      "❤\ufe0f\ufffd",
		"x\ufe0f":            "x\ufffd",
		"\U000e0041\u202ea":  "\ufffd\ufffda", // a tag, and an override
		"\u2066a\u2069":      "\ufffda\ufffd",
		"a\rb\x1b[2J\x00":    "a\ufffdb\ufffd[2J\ufffd",
		"\u2028\u00ad\ufeff": "\ufffd\ufffd\ufffd",
	} {
		_, hidden := text.FirstHidden(s)
		require.True(t, hidden, "%q", s)
		require.Equal(t, want, text.Unhide(s))
	}
}
