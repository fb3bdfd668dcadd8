package discovery

import "sync"

// Told remembers which instructions a session was told, so that those of a directory come when a path below it is first
// touched, and again only when they changed. The zero value has told nothing. It is safe for concurrent use.
type Told struct {
	mu    sync.Mutex
	texts map[string]string
}

// Tell are the instructions of list that count and were not told before. They are told now.
//
//	list, err := catalog.For(ctx, path)
//	text := catalog.Assemble(told.Tell(list)).String() // "" if there is nothing new
func (t *Told) Tell(list []Artifact) []Artifact {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.texts == nil {
		t.texts = make(map[string]string)
	}
	var fresh []Artifact
	for _, a := range list {
		if text, told := t.texts[a.Path]; a.State != Active || a.Kind != Instruction || told && text == a.whole() {
			continue
		}
		t.texts[a.Path] = a.whole()
		fresh = append(fresh, a)
	}
	return fresh
}

// whole is an instruction's text with what it imports.
func (a Artifact) whole() string {
	text := a.text
	for _, in := range a.Imports {
		text += "\x00" + in.text
	}
	return text
}
