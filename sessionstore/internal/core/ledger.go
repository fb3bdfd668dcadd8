package core

import (
	"cmp"
	"context"

	"github.com/acp-agent/acp-agent/sessionstore"
)

// Charge implements [sessionstore.Store].
func (s *Store) Charge(
	ctx context.Context, l sessionstore.Lease, charges []sessionstore.Charge,
) error {
	if err := sessionstore.ValidateCharges(charges); err != nil {
		return err
	}
	if len(charges) == 0 {
		return s.checkLease(ctx, l)
	}
	return s.change(ctx, func(tx *transaction) { tx.addCharges(tx.hold(l), charges) })
}

const chargeColumns = "(owner, session, agent, at, source, meter, unit, amount, reading, mark)"

// addCharges adds charges of a session.
func (tx *transaction) addCharges(r *row, charges []sessionstore.Charge) {
	each := make([][]any, len(charges))
	for i, c := range charges {
		at := cmp.Or(millis(c.At), tx.now())
		each[i] = []any{r.key, r.agent, at, c.Source, string(c.Meter), c.Unit, c.Amount,
			c.Reading, string(c.Mark)}
	}
	tx.execEach("INSERT INTO charges "+chargeColumns+
		" VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)", each)
}

// latest matches the latest charges of each meter and unit of the session $2.
const latest = "c.key IN (SELECT max(key) FROM charges WHERE owner = $1 AND session = $2 " +
	"GROUP BY meter, unit)"

// inheritReadings gives a session the latest readings of another one of the same agent.
func (tx *transaction) inheritReadings(from, to *row) {
	const session, now = "CAST($3 AS bigint)", "CAST($4 AS bigint)"
	tx.exec("INSERT INTO charges "+chargeColumns+`
		SELECT owner, `+session+`, agent, `+now+`, source, meter, unit, 0, reading,
			CASE mark WHEN 'before' THEN mark ELSE '' END
		FROM charges c WHERE owner = $1 AND `+latest+` AND agent = $5
		UNION ALL SELECT owner, `+session+`, agent, `+now+`, '', 'cost', '', 0, 0, 'before'
		FROM sessions WHERE owner = $1 AND key = $2 AND id = $6 AND imported`,
		from.key, to.key, tx.now(), to.agent, string(from.id))
}

// chargesOf returns the charges of a session that match a condition on $1, its owner, and $2.
func (tx *transaction) chargesOf(r *row, condition string) []sessionstore.Charge {
	return tx.charges(`
		SELECT c.at, c.source, c.meter, c.unit, c.amount, c.reading, c.mark, s.id, a.kind, a.profile
		FROM charges c JOIN agents a ON a.key = c.agent AND a.owner = c.owner
		JOIN sessions s ON s.owner = c.owner AND s.id = $3
		WHERE c.owner = $1 AND c.session = $2 AND `+condition+` ORDER BY c.key`,
		r.key, string(r.id))
}

// charges returns the charges that a query finds.
func (tx *transaction) charges(text string, args ...any) (charges []sessionstore.Charge) {
	for rows := range tx.rows(text, args...) {
		var (
			at int64
			c  sessionstore.Charge
		)
		must(rows.Scan(&at, &c.Source, (*string)(&c.Meter), &c.Unit, &c.Amount, &c.Reading,
			(*string)(&c.Mark), (*string)(&c.Session), &c.Agent.Kind, &c.Agent.Profile))
		c.At = toTime(at)
		charges = append(charges, c)
	}
	return charges
}

// Account implements [sessionstore.Store].
func (s *Store) Account(ctx context.Context, id sessionstore.ID) (sessionstore.Account, error) {
	return transact(ctx, s, Read, func(tx *transaction) sessionstore.Account {
		r := mustExist(id, tx.find(id))
		account := sessionstore.Account{Latest: tx.chargesOf(r, latest), Before: r.imported}
		if !r.imported {
			tx.row([]any{&account.Before}, "SELECT count(*) > 0 FROM charges "+
				"WHERE owner = $1 AND session = $2 AND mark = 'before'", r.key)
		}
		return account
	})
}

// Charges implements [sessionstore.Store].
func (s *Store) Charges(ctx context.Context, id sessionstore.ID) ([]sessionstore.Charge, error) {
	return transact(ctx, s, Read, func(tx *transaction) []sessionstore.Charge {
		return tx.chargesOf(mustExist(id, tx.find(id)), "TRUE")
	})
}

// Sums implements [sessionstore.Store].
func (s *Store) Sums(
	ctx context.Context, q sessionstore.ChargeQuery,
) ([]sessionstore.Charge, error) {
	if q.Session.Validate() != nil {
		return nil, nil
	}
	args := []any{millis(q.Since), string(q.Meter)}
	condition := ""
	if q.Session != "" {
		condition = " AND c.session = (SELECT key FROM sessions WHERE owner = $1 AND id = $4)"
		args = append(args, string(q.Session))
	}
	return transact(ctx, s, List, func(tx *transaction) []sessionstore.Charge {
		// What deleted sessions have used may not be purged yet.
		return tx.charges(`
			SELECT g.at, '', g.meter, g.unit, g.amount, CAST(0 AS double precision), g.mark, g.id,
				a.kind, a.profile
			FROM (
				SELECT c.owner, s.id, c.agent, meter, unit, mark, min(at) AS at, sum(amount) AS amount,
					min(c.key) AS first
				FROM charges c JOIN sessions s ON s.owner = c.owner AND s.key = c.session
				WHERE c.owner = $1 AND at >= $2 AND ($3 = '' OR meter = $3)`+condition+`
				GROUP BY c.owner, s.id, c.agent, meter, unit, mark
			) g JOIN agents a ON a.key = g.agent AND a.owner = g.owner ORDER BY g.first`, args...)
	})
}
