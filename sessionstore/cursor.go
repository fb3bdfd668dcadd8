package sessionstore

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"time"
)

// Cursor is an opaque position in a list. It is valid only with the filters for which it was made.
type Cursor string

// Position is the position of a session in a list.
type Position struct {
	Updated time.Time
	ID      ID
}

// Before reports whether a session at p is listed before one at other: later activity comes first,
// then the greater id.
func (p Position) Before(other Position) bool {
	if !p.Updated.Equal(other.Updated) {
		return p.Updated.After(other.Updated)
	}
	return p.ID > other.ID
}

// A cursor is the base64url encoding of a version, the position's time in milliseconds, the digest
// of the filters, and the id.
const (
	cursorVersion = 1
	digestSize    = 8
	cursorHead    = 1 + 8 + digestSize
)

// After returns the cursor of q's list that continues after p.
func (q Query) After(p Position) Cursor {
	raw := make([]byte, 0, cursorHead+len(p.ID))
	raw = append(raw, cursorVersion)
	raw = binary.BigEndian.AppendUint64(raw, uint64(p.Updated.UnixMilli()))
	raw = append(raw, q.digest()...)
	raw = append(raw, p.ID...)
	return Cursor(base64.RawURLEncoding.EncodeToString(raw))
}

// From returns the position after which q's page starts; ok is false at the start of the list. The
// error is a [*CursorError].
func (q Query) From() (p Position, ok bool, err error) {
	if q.Cursor == "" {
		return Position{}, false, nil
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(string(q.Cursor))
	if err != nil || len(raw) < cursorHead || raw[0] != cursorVersion ||
		!bytes.Equal(raw[9:cursorHead], q.digest()) {
		return Position{}, false, &CursorError{Cursor: q.Cursor}
	}
	ms := int64(binary.BigEndian.Uint64(raw[1:9]))
	return Position{Updated: time.UnixMilli(ms).UTC(), ID: ID(raw[cursorHead:])}, true, nil
}

// digest identifies q's filters. It leaves out real paths and the filter for unused sessions, so
// that a cursor stays valid if a link or the time changes between two pages.
func (q Query) digest() []byte {
	filters := struct {
		Agent    Agent
		Cwd      *string
		Dirs     []string
		HaveDirs bool
		Archive  ArchiveFilter `json:",omitempty"`
	}{Agent: q.Agent, Archive: q.Archive}
	if q.Cwd != nil {
		cwd := q.Cwd.Spelling.String()
		filters.Cwd = &cwd
	}
	if q.Additional != nil {
		filters.HaveDirs, filters.Dirs = true, q.Additional.Spelling.Strings()
	}
	text, err := json.Marshal(filters)
	if err != nil {
		panic("sessionstore: filters cannot be encoded: " + err.Error())
	}
	sum := sha256.Sum256(text)
	return sum[:digestSize]
}
