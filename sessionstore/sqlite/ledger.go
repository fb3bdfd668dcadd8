package sqlite

import (
	"context"
	"database/sql"
	"maps"
	"slices"

	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/internal/rules"
)

// Charge implements [sessionstore.Ledger].
func (s *Store) Charge(
	ctx context.Context, l sessionstore.Lease, charges []sessionstore.Charge,
) error {
	if err := sessionstore.ValidateCharges(charges); err != nil {
		return err
	}
	if len(charges) == 0 {
		return s.check(ctx, l)
	}
	return s.update(ctx, l, func(tx *transaction, r row) error {
		return addCharges(tx, r.key, s.clock(), charges)
	})
}

// addCharges adds charges of the session with a key.
func addCharges(tx *transaction, session, now int64, charges []sessionstore.Charge) error {
	for _, c := range charges {
		at := now
		if !c.At.IsZero() {
			at = c.At.UnixMilli()
		}
		err := tx.exec(`
			INSERT INTO charges (session, agent, at, source, meter, unit, amount, reading, mark)
			SELECT key, agent, ?, ?, ?, ?, ?, ?, ? FROM sessions WHERE key = ?`, at, c.Source,
			string(c.Meter), c.Unit, c.Amount, c.Reading, string(c.Mark), session)
		if err != nil {
			return err
		}
	}
	return nil
}

// inheritReadings gives the session with a key the latest readings of another one, if both belong
// to the same agent.
func inheritReadings(tx *transaction, session, from, now int64) error {
	return tx.exec(`
		INSERT INTO charges (session, agent, at, source, meter, unit, amount, reading, mark)
		SELECT ?1, agent, ?3, source, meter, unit, 0, reading, CASE mark WHEN 'before' THEN mark ELSE '' END
		FROM charges WHERE key IN (SELECT max(key) FROM charges WHERE session = ?2 GROUP BY meter, unit)
			AND agent = (SELECT agent FROM sessions WHERE key = ?1)
		UNION ALL SELECT ?1, agent, ?3, '', 'cost', '', 0, 0, 'before'
		FROM runtime_keys WHERE session = ?2 AND imported
			AND agent = (SELECT agent FROM sessions WHERE key = ?1)`, session, from, now)
}

const chargeColumns = "at, source, meter, unit, amount, reading, mark"

func scanCharge(rows *sql.Rows, more ...any) (c sessionstore.Charge, err error) {
	var at int64
	err = rows.Scan(append([]any{&at, &c.Source, (*string)(&c.Meter), &c.Unit, &c.Amount, &c.Reading,
		(*string)(&c.Mark)}, more...)...)
	c.At = rules.Time(at)
	return c, err
}

// chargesOf returns the charges of a session that match a condition on ?1, its key.
func (s *Store) chargesOf(
	tx *transaction, id sessionstore.ID, condition string,
) (charges []sessionstore.Charge, r row, err error) {
	if r, err = s.owner.find(tx, id); err != nil {
		return nil, r, err
	}
	err = tx.each("SELECT "+chargeColumns+", kind, profile FROM charges "+
		"JOIN agents ON agents.key = charges.agent WHERE "+condition+" ORDER BY charges.key",
		[]any{r.key}, func(rows *sql.Rows) error {
			var a sessionstore.Agent
			c, err := scanCharge(rows, &a.Kind, &a.Profile)
			_, a.Kind = split(a.Kind)
			c.Session, c.Agent = id, a
			charges = append(charges, c)
			return err
		})
	return charges, r, err
}

// Account implements [sessionstore.Ledger].
func (s *Store) Account(
	ctx context.Context, id sessionstore.ID,
) (account sessionstore.Account, err error) {
	err = s.read(ctx, func(tx *transaction) error {
		latest, r, err := s.chargesOf(tx, id,
			"charges.key IN (SELECT max(key) FROM charges WHERE session = ?1 GROUP BY meter, unit)")
		if err != nil {
			return err
		}
		account.Latest = latest
		return tx.row(`
			SELECT EXISTS (SELECT 1 FROM runtime_keys WHERE session = ?1 AND imported)
				OR EXISTS (SELECT 1 FROM charges WHERE session = ?1 AND mark = 'before')`, r.key).
			Scan(&account.Before)
	})
	return account, err
}

// Charges implements [sessionstore.Ledger].
func (s *Store) Charges(
	ctx context.Context, id sessionstore.ID,
) (charges []sessionstore.Charge, err error) {
	err = s.read(ctx, func(tx *transaction) (err error) {
		charges, _, err = s.chargesOf(tx, id, "session = ?1")
		return err
	})
	return charges, err
}

// Sums implements [sessionstore.Ledger].
func (s *Store) Sums(
	ctx context.Context, q sessionstore.ChargeQuery,
) (sums []sessionstore.Charge, err error) {
	since, until, every := q.Bounds()
	id := ""
	if q.Session != "" {
		id = string(s.owner.storedID(q.Session))
	}
	err = s.read(ctx, func(tx *transaction) error {
		sums = nil
		agents, err := s.owner.agents(tx, sessionstore.Agent{})
		if err != nil {
			return err
		}
		condition := "charges.agent IN (SELECT value FROM json_each(?1)) AND at >= ?2 AND at < ?3"
		if id != "" {
			condition += " AND charges.session = (SELECT key FROM sessions WHERE id = ?6)"
		}
		return tx.each(`
			SELECT min(at), '', meter, unit, sum(amount), 0.0, mark, sessions.id, charges.agent
			FROM charges JOIN sessions ON sessions.key = charges.session
			WHERE `+condition+` AND (?4 = '' OR meter = ?4)
			GROUP BY charges.session, charges.agent, meter, unit, mark, at / ?5
			ORDER BY min(charges.key)`,
			[]any{asJSON(slices.Collect(maps.Keys(agents))), since, until, string(q.Meter), every, id},
			func(rows *sql.Rows) error {
				var agent int64
				var stored string
				c, err := scanCharge(rows, &stored, &agent)
				c.Session, c.Agent = plainID(sessionstore.ID(stored)), agents[agent]
				sums = append(sums, c)
				return err
			})
	})
	return sums, err
}
