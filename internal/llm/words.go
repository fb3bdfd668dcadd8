package llm

import (
	_ "embed"
	"encoding/json"
	"slices"
	"strings"
	"sync"
)

//go:embed words.json
var wordsFile []byte

// vocabulary returns what the words of servers mean. The first kind counts that fits an error.
var vocabulary = sync.OnceValue(func() (v struct {
	Kinds, Deviations []wording
	Statuses          map[int]string // that Cloudflare and others give, in front of a server
}) {
	if err := json.Unmarshal(wordsFile, &v); err != nil {
		panic(err)
	}
	return v
})

// wording is a row of words.json: some words of servers, and what they mean.
type wording struct {
	// Words are in small letters: a response must have one of them, and And. Those of Unless belong
	// to other errors. With lists the statuses with which that counts, nil for all. 0 stands for no
	// status of an error. With those in Status, the response needs no words.
	And           string
	Words, Unless []string
	With, Status  []int

	Kind   Kind
	Busy   bool   // the server only has too much to do
	Advice string // for the user
	// Quirk is how a server with these words differs from its format. It can also be recognised by
	// Host, the end of the address, or Model, a part of the model's name in small letters.
	Quirk       quirk
	Host, Model string
}

// means reports whether a response with a status says that, in small letters.
func (w wording) means(status int, said string) bool {
	words := (w.With == nil || slices.Contains(w.With, status)) &&
		strings.Contains(said, w.And) && containsAny(said, w.Words...)
	return (words || slices.Contains(w.Status, status)) && !containsAny(said, w.Unless...)
}

func containsAny(s string, parts ...string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(s, part) })
}
