package sessionstore

import (
	"bytes"
	"errors"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// titleKind is the kind of update that a history does not keep: it says what [Store.SetTitle] stores.
const titleKind = "session_info_update"

// StateKinds are the update kinds of which only the latest is kept, in the order of [Store.States].
func StateKinds() []string {
	return []string{"available_commands_update", "current_mode_update", "config_option_update", "usage_update"}
}

// StateUpdate is the latest update of a state kind.
type StateUpdate struct {
	Kind   string
	Update Update
}

// Parts are updates by how they are kept.
type Parts struct {
	// History are the events, in order, each on one line.
	History []Update
	// States are the latest of each state kind, in the order of [Store.States].
	States []StateUpdate
}

// Split tells updates apart: what is history, what is a state, and what is not kept at all
// (session_info_update, which is stored as the title). The error is an [*UpdateError].
func Split(updates []Update) (Parts, error) {
	var (
		parts  = Parts{History: make([]Update, 0, len(updates))}
		kinds  = StateKinds()
		latest = make([]Update, len(kinds))
	)
	for i, u := range updates {
		kind, err := kindOf(u)
		if err != nil {
			return Parts{}, &UpdateError{Index: i, Err: err}
		}
		if state := slices.Index(kinds, kind); state >= 0 {
			latest[state] = oneLine(u)
		} else if kind != titleKind {
			parts.History = append(parts.History, oneLine(u))
		}
	}
	for i, u := range latest {
		if u != nil {
			parts.States = append(parts.States, StateUpdate{kinds[i], u})
		}
	}
	return parts, nil
}

// kindOf returns an update's sessionUpdate, "" if that is no string.
func kindOf(u Update) (string, error) {
	var params struct {
		Update *struct {
			Kind jsontext.Value `json:"sessionUpdate"`
		} `json:"update"`
	}
	err := json.Unmarshal(u, &params, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	switch {
	case err != nil:
		return "", err
	case params.Update == nil:
		return "", errors.New(`it has no "update"`)
	case params.Update.Kind.Kind() != '"':
		return "", nil
	}
	kind, _ := jsontext.AppendUnquote(nil, params.Update.Kind)
	return string(kind), nil
}

// oneLine makes u fit a line. Within JSON a newline can only be white space.
func oneLine(u Update) Update {
	if bytes.IndexByte(u, '\n') < 0 {
		return u
	}
	return bytes.ReplaceAll(u, []byte("\n"), []byte(" "))
}
