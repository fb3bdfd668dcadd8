package permission

import (
	"strings"
	"sync"
	"unicode"

	"github.com/acp-agent/acp-agent/internal/permission/commandline"
)

// saying is a text of an action. commands returns [commandsIn] it, which is read once for all
// rules.
type saying struct {
	text     string
	commands func() [][]string
}

// texts returns the texts of an action in which rules look for words. complete is false if one is
// too long: then only its beginning is there.
func (a Action) texts() (all []saying, complete bool) {
	texts := append([]string{a.Line}, a.Texts...)
	complete = len(texts) <= maxMentions
	for _, s := range texts[:min(len(texts), maxMentions)] {
		complete = complete && len(s) <= commandline.MaxLine
		s = s[:min(len(s), commandline.MaxLine)]
		all = append(all, saying{s, sync.OnceValue(func() [][]string { return commandsIn(s) })})
	}
	return all, complete
}

// isPattern reports whether a shell may take a word for a pattern of names. One without a letter
// matches too much to say anything.
func isPattern(word string) bool {
	return strings.ContainsAny(word, "*?[") && strings.ContainsFunc(word, unicode.IsLetter)
}
