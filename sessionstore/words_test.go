package sessionstore_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/sessionstore"
)

func TestWords(t *testing.T) {
	const text = "\u0301 a\u0301\u0302b,Ça-va \xff会话🎉x \x00ﬀ 한 \ufffd."
	var words, places []string
	for word, at := range sessionstore.Words(text) {
		words, places = append(words, word), append(places, text[at.Start:at.End])
	}
	require.Equal(t, []string{"ab", "ca", "va", "\ufffd", "会", "话", "🎉", "x", "ﬀ", "한", "\ufffd"}, words)
	require.Equal(t, []string{"a\u0301\u0302b", "Ça", "va", "\xff", "会", "话", "🎉", "x", "ﬀ", "한", "\ufffd"}, places)
	for range sessionstore.Words(text) {
		break
	}
}

func TestMatchesOfQuery(t *testing.T) {
	for query, found := range map[string][]string{
		"one":                   {"one", "ones"},
		`"one"`:                 {"one"},
		"three one":             {"one", "three", "ones"},
		`"one two" "two three"`: {"one two three"},
		"one missing":           nil,
		"":                      nil,
	} {
		const text = "one two three ones"
		var places []string
		for _, m := range (sessionstore.SearchQuery{Text: query}).Matches(text) {
			places = append(places, text[m.Start:m.End])
		}
		require.Equal(t, found, places, query)
	}
}
