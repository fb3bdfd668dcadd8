package core

import (
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
	return s.update(ctx, l, func(tx *transaction, r *row) error {
		return tx.addCharges(r, charges)
	})
}

const chargeColumns = "(owner, session, agent, at, source, meter, unit, amount, reading, mark)"

// addCharges adds charges of a session.
func (tx *transaction) addCharges(r *row, charges []sessionstore.Charge) error {
	each := make([][]any, len(charges))
	for i, c := range charges {
		at := tx.now
		if !c.At.IsZero() {
			at = c.At.UnixMilli()
		}
		each[i] = tx.args([]any{r.key, r.agent, at, c.Source, string(c.Meter), c.Unit, c.Amount,
			c.Reading, string(c.Mark)})
	}
	return tx.ExecEach("INSERT INTO charges "+chargeColumns+
		" VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)", each)
}

// latest matches the latest charges of each meter and unit of the session $2.
const latest = "c.key IN (SELECT max(key) FROM charges WHERE owner = $1 AND session = $2 " +
	"GROUP BY meter, unit)"

// inheritReadings gives a session the latest readings of another one of the same agent.
func (tx *transaction) inheritReadings(from, to *row) error {
	const session, now = "CAST($3 AS bigint)", "CAST($4 AS bigint)"
	return tx.exec("INSERT INTO charges "+chargeColumns+`
		SELECT owner, `+session+`, agent, `+now+`, source, meter, unit, 0, reading,
			CASE mark WHEN 'before' THEN mark ELSE '' END
		FROM charges c WHERE owner = $1 AND `+latest+` AND agent = $5
		UNION ALL SELECT owner, `+session+`, agent, `+now+`, '', 'cost', '', 0, 0, 'before'
		FROM sessions WHERE owner = $1 AND key = $2 AND id = $6 AND imported`,
		from.key, to.key, tx.now, to.agent, string(from.id))
}

// chargesOf returns the charges of a session that match a condition on $1, its owner, and $2.
func (tx *transaction) chargesOf(
	id sessionstore.ID, condition string,
) (charges []sessionstore.Charge, r *row, err error) {
	if r, err = tx.find(id, ""); err != nil {
		return nil, nil, err
	}
	charges, err = tx.charges(`
		SELECT c.at, c.source, c.meter, c.unit, c.amount, c.reading, c.mark, s.id, a.kind, a.profile
		FROM charges c JOIN agents a ON a.key = c.agent AND a.owner = c.owner
		JOIN sessions s ON s.owner = c.owner AND s.id = $3
		WHERE c.owner = $1 AND c.session = $2 AND `+condition+` ORDER BY c.key`, r.key, string(id))
	return charges, r, err
}

// charges returns the charges that a query finds.
func (tx *transaction) charges(
	text string, args ...any,
) (charges []sessionstore.Charge, err error) {
	var (
		at int64
		c  sessionstore.Charge
	)
	err = tx.each([]any{&at, &c.Source, (*string)(&c.Meter), &c.Unit, &c.Amount, &c.Reading,
		(*string)(&c.Mark), (*string)(&c.Session), &c.Agent.Kind, &c.Agent.Profile}, func() error {
		c.At = toTime(at)
		charges = append(charges, c)
		return nil
	}, text, args...)
	return charges, err
}

// Account implements [sessionstore.Store].
func (s *Store) Account(
	ctx context.Context, id sessionstore.ID,
) (account sessionstore.Account, err error) {
	err = s.read(ctx, func(tx *transaction) error {
		var r *row
		if account.Latest, r, err = tx.chargesOf(id, latest); err != nil {
			return err
		}
		account.Before = r.imported
		if !r.imported {
			err = tx.row([]any{&account.Before}, "SELECT count(*) > 0 FROM charges "+
				"WHERE owner = $1 AND session = $2 AND mark = 'before'", r.key)
		}
		return err
	})
	return account, err
}

// Charges implements [sessionstore.Store].
func (s *Store) Charges(
	ctx context.Context, id sessionstore.ID,
) (charges []sessionstore.Charge, err error) {
	err = s.read(ctx, func(tx *transaction) (err error) {
		charges, _, err = tx.chargesOf(id, "TRUE")
		return err
	})
	return charges, err
}

// Sums implements [sessionstore.Store].
func (s *Store) Sums(
	ctx context.Context, q sessionstore.ChargeQuery,
) (sums []sessionstore.Charge, err error) {
	if q.Session != "" && q.Session.Validate() != nil {
		return nil, nil
	}
	since, until, every := q.Bounds()
	args := []any{since, until, string(q.Meter), every}
	condition := ""
	if q.Session != "" {
		condition = " AND c.session = (SELECT key FROM sessions WHERE owner = $1 AND id = $6)"
		args = append(args, string(q.Session))
	}
	err = s.list(ctx, func(tx *transaction) error {
		// What deleted sessions have used may not be purged yet.
		sums, err = tx.charges(`
			SELECT g.at, '', g.meter, g.unit, g.amount, CAST(0 AS double precision), g.mark, g.id,
				a.kind, a.profile
			FROM (
				SELECT c.owner, s.id, c.agent, meter, unit, mark, min(at) AS at, sum(amount) AS amount,
					min(c.key) AS first
				FROM charges c JOIN sessions s ON s.owner = c.owner AND s.key = c.session
				WHERE c.owner = $1 AND at >= $2 AND at < $3 AND ($4 = '' OR meter = $4)`+condition+`
				GROUP BY c.owner, s.id, c.agent, meter, unit, mark, at / $5
			) g JOIN agents a ON a.key = g.agent AND a.owner = g.owner ORDER BY g.first`, args...)
		return err
	})
	return sums, err
}
