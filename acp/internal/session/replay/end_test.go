package replay

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// updates returns the updates that a text describes, with | between them: >x is a piece of a
// prompt, = a state, and anything else what the agent says.
func updates(text string) (all []sessionstore.Update) {
	for one := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '|' }) {
		u := backend.Text(one)
		if said, isPrompt := strings.CutPrefix(one, ">"); isPrompt {
			u = backend.MetaChunk(sessionstore.UserMessageChunk, said, nil)
		} else if one == "=" {
			u = backend.NewUpdate(map[string]any{"sessionUpdate": sessionstore.UsageUpdate})
		}
		all = append(all, u)
	}
	return all
}

// describe returns the text that describes updates.
func describe(all []sessionstore.Update) string {
	var texts []string
	for _, u := range all {
		marks := map[sessionstore.Kind]string{sessionstore.UserMessageChunk: ">",
			sessionstore.UsageUpdate: "="}
		texts = append(texts, marks[u.Kind]+backend.ChunkText(u))
	}
	return strings.Join(texts, "|")
}

// after returns what of a replay comes after a stored history.
func after(t require.TestingT, stored, replayed []sessionstore.Update) string {
	e, err := readEnd(func(yield func(sessionstore.Update, error) bool) {
		for _, u := range stored {
			yield(u, nil)
		}
	})
	require.NoError(t, err)
	return describe(slices.DeleteFunc(slices.Clone(replayed), func(u sessionstore.Update) bool {
		return !e.passed(u)
	}))
}

// Clause P7.
func TestEnd(t *testing.T) {
	const past = ">say one|1|>say two|2|>say three|3"
	for name, c := range map[string]struct{ stored, replayed, after string }{
		"nothing is stored":     {"", "hello|>a|1", "hello|>a|1"},
		"all of it":             {past, past, ""},
		"a notice":              {past, "Restored.", ""},
		"the last turn":         {past, ">say three|3", ""},
		"without the last turn": {past, ">say one|1|>say two|2", ""},
		"without an answer":     {past, ">say one|1|>say two|2|>say three", ""},
		"more of the answer":    {past, past + "|and more|=", ""},
		"another conversation":  {past, ">alone|x|>more|y", ""},
		"a longer last prompt":  {past, ">say one|1|>say two|2|>say three more|x|>more|y", ""},
		"a turn more":           {past, past + "|>more|x", ">more|x"},
		"everything behind it":  {past, past + "|=|>more|=|x|>a|y", ">more|=|x|>a|y"},
		"only the end, changed": {past, ">say three|other|>more|x", ">more|x"},
		"in other pieces":       {past, "> say |=|>thr|>ee\n|3|>more|x", ">more|x"},
		"the last prompt again": {past, past + "|>say three|x", ">say three|x"},
		"one that is repeated":  {">a|1|>b|2|>a|3", ">a|1|>b|2|>a|3|>c|x", ">c|x"},
		"repeated too rarely":   {">a|1|>b|2|>a|3", ">b|2|>a|3|>c|x", ""},
		"our command comes":     {past, past + "|>/roots add x|What?", ""},
		"our command was last":  {past + "|>/roots|none", past + "|>more|x", ">more|x"},
		"only our commands":     {">/roots|none", "Restored.|>more|x", ">more|x"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.after, after(t, updates(c.stored), updates(c.replayed)))
		})
	}
}

// Whatever is replayed, what counts as new begins with a prompt and goes on to the end. The stored
// history is never new again, and what surely comes after it always is.
//
// Clause P7.
func TestEndOfAnyHistory(t *testing.T) {
	draw := rapid.SliceOfN(rapid.SampledFrom(updates(">a|>b|>/roots|1|=")), 1, 12)
	rapid.Check(t, func(t *rapid.T) {
		stored, replayed := draw.Draw(t, "stored"), draw.Draw(t, "replayed")
		got := after(t, stored, replayed)
		require.True(t, got == "" || got[0] == '>', got)
		require.True(t, strings.HasSuffix(describe(replayed), got), got)
		again := slices.Concat(stored, updates("x")) // so that two prompts are not one
		require.Empty(t, after(t, stored, again))
		require.Equal(t, ">more|y", after(t, stored, slices.Concat(again, updates(">more|y"))))
	})
}
