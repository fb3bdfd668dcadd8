package sqlite

import (
	"context"
	"database/sql"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/acp-agent/acp-agent/sessionstore"
)

// owner is the owner of a session: a principal, or "" for the local user. In the tables, the ids of
// a principal's sessions and the kinds of its agents begin with the principal's name and ownerMark.
// So every index separates owners.
type owner string

// ownerMark follows the name of a principal. Valid text does not contain it.
const ownerMark = "\xff"

// prefix returns the prefix of the owner's ids and kinds.
func (o owner) prefix() string {
	if o == "" {
		return ""
	}
	return string(o) + ownerMark
}

// stored returns an id or a kind of the owner as it is in the tables. For invalid text, which might
// name data of another owner, it returns something that no table contains.
func (o owner) stored(text string) string {
	if !utf8.ValidString(text) {
		return ownerMark
	}
	return o.prefix() + text
}

// storedID returns the id of a session as it is in the tables.
func (o owner) storedID(id sessionstore.ID) sessionstore.ID {
	return sessionstore.ID(o.stored(string(id)))
}

// storedAgent returns an agent as it is in the tables.
func (o owner) storedAgent(a sessionstore.Agent) sessionstore.Agent {
	return sessionstore.Agent{Kind: o.stored(a.Kind), Profile: a.Profile}
}

// split separates an id or a kind from the prefix of its owner.
func split(stored string) (prefix, text string) {
	at := strings.LastIndex(stored, ownerMark) + 1
	return stored[:at], stored[at:]
}

// plainID returns the id of a session without the prefix of its owner.
func plainID(stored sessionstore.ID) sessionstore.ID {
	_, plain := split(string(stored))
	return sessionstore.ID(plain)
}

// agents returns the owner's agents by key: a, or all of them if its Kind is "".
func (o owner) agents(tx *transaction, a sessionstore.Agent) (map[int64]sessionstore.Agent, error) {
	condition, args := "kind >= ? AND kind < ?", []any{o.prefix(), o.prefix() + ownerMark}
	if a.Kind != "" {
		condition, args = "kind = ? AND profile = ?", []any{o.stored(a.Kind), a.Profile}
	}
	agents, err := agentsWhere(tx, condition, args...)
	for key, a := range agents {
		var prefix string
		if prefix, a.Kind = split(a.Kind); prefix == o.prefix() {
			agents[key] = a
		} else {
			delete(agents, key)
		}
	}
	return agents, err
}

// agentsWhere returns the agents of all owners that match a condition, as they are in the table.
func agentsWhere(
	tx *transaction, condition string, args ...any,
) (map[int64]sessionstore.Agent, error) {
	agents := make(map[int64]sessionstore.Agent)
	err := tx.each("SELECT key, kind, profile FROM agents WHERE "+condition, args,
		func(rows *sql.Rows) error {
			var (
				key int64
				a   sessionstore.Agent
			)
			err := rows.Scan(&key, &a.Kind, &a.Profile)
			agents[key] = a
			return err
		})
	return agents, err
}

// For implements [sessionstore.Shared].
func (s *Store) For(principal string) sessionstore.Store {
	return view{&Store{medium: s.medium, owner: owner(principal)}}
}

// view is the store of an owner. Closing it does not close the file.
type view struct{ *Store }

// Close implements [sessionstore.Store].
func (view) Close() error { return nil }

// Owners implements [sessionstore.Shared].
func (s *Store) Owners(ctx context.Context) (owners []string, err error) {
	err = s.read(ctx, func(tx *transaction) error {
		agents, err := agentsWhere(tx, "TRUE")
		names := make(map[string]bool)
		for _, a := range agents {
			prefix, _ := split(a.Kind)
			names[strings.TrimSuffix(prefix, ownerMark)] = true
		}
		owners = slices.Sorted(maps.Keys(names))
		return err
	})
	return owners, err
}
