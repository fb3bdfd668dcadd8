package sessionstore

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"time"
)

// Position is a place in a list: that of a session.
type Position struct {
	Updated time.Time
	ID      ID
}

// Before reports whether a session at p is listed before one at other (A18).
func (p Position) Before(other Position) bool {
	if !p.Updated.Equal(other.Updated) {
		return p.Updated.After(other.Updated)
	}
	return p.ID > other.ID
}

// A cursor is base64url of: a version, the position's milliseconds, the digest of the filters, the id.
const (
	cursorVersion = 1
	digestSize    = 8
	cursorHead    = 1 + 8 + digestSize
)

// After returns a cursor of q's list that goes on after p.
func (q Query) After(p Position) Cursor {
	raw := make([]byte, 0, cursorHead+len(p.ID))
	raw = append(raw, cursorVersion)
	raw = binary.BigEndian.AppendUint64(raw, uint64(p.Updated.UnixMilli()))
	raw = append(raw, q.digest()...)
	raw = append(raw, p.ID...)
	return Cursor(base64.RawURLEncoding.EncodeToString(raw))
}

// From returns the position after which q's page starts; ok is false for the list's start.
// The error is a [*CursorError].
func (q Query) From() (p Position, ok bool, err error) {
	if q.Cursor == "" {
		return Position{}, false, nil
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(string(q.Cursor))
	if err != nil || len(raw) < cursorHead || raw[0] != cursorVersion || !bytes.Equal(raw[9:cursorHead], q.digest()) {
		return Position{}, false, &CursorError{Cursor: q.Cursor}
	}
	ms := int64(binary.BigEndian.Uint64(raw[1:9]))
	return Position{Updated: time.UnixMilli(ms).UTC(), ID: ID(raw[cursorHead:])}, true, nil
}

// digest identifies q's filters. Real paths are left out: a link that moves between two pages does
// not make another list of the client's request.
func (q Query) digest() []byte {
	filters := struct {
		Agent    Agent
		Cwd      *string
		Dirs     []string
		HaveDirs bool
	}{Agent: q.Agent}
	if q.Cwd != nil {
		cwd := q.Cwd.Spelling.String()
		filters.Cwd = &cwd
	}
	if q.Additional != nil {
		filters.HaveDirs, filters.Dirs = true, q.Additional.Spelling.Strings()
	}
	text, err := json.Marshal(filters)
	if err != nil {
		panic("sessionstore: filters do not encode: " + err.Error())
	}
	sum := sha256.Sum256(text)
	return sum[:digestSize]
}
