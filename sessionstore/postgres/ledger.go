package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

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
		return s.checkLease(ctx, l)
	}
	return s.update(ctx, l, func(tx *transaction, r *row) error {
		return tx.addCharges(r, charges)
	})
}

// addCharges adds charges of a session.
func (tx *transaction) addCharges(r *row, charges []sessionstore.Charge) error {
	if len(charges) == 0 {
		return nil
	}
	var (
		times                        []*int64
		sources, meters, units, mark []string
		amounts, readings            []float64
	)
	for _, c := range charges {
		var at *int64
		if !c.At.IsZero() {
			at = new(c.At.UnixMilli())
		}
		times, sources, meters = append(times, at), append(sources, c.Source), append(meters, string(c.Meter))
		units, mark = append(units, c.Unit), append(mark, string(c.Mark))
		amounts, readings = append(amounts, c.Amount), append(readings, c.Reading)
	}
	return tx.exec(`
		INSERT INTO charges (owner, id, agent, at, source, meter, unit, amount, reading, mark)
		SELECT $1, $2, $3, coalesce(at, `+now+`), source, meter, unit, amount, reading, mark
		FROM unnest($4::bigint[], $5::text[], $6::text[], $7::text[], $8::float8[], $9::float8[], $10::text[])
			WITH ORDINALITY AS c (at, source, meter, unit, amount, reading, mark, n) ORDER BY n`,
		string(r.id), r.agent, times, sources, meters, units, amounts, readings, mark)
}

// latest matches the latest charges of each meter and unit of the session $2.
const latest = "c.key IN (SELECT max(key) FROM charges WHERE owner = $1 AND id = $2 GROUP BY meter, unit)"

// inheritReadings gives a session the latest readings of another one of the same agent.
func (tx *transaction) inheritReadings(from, to *row) error {
	return tx.exec(`
		INSERT INTO charges (owner, id, agent, at, source, meter, unit, amount, reading, mark)
		SELECT owner, $3, agent, `+now+`, source, meter, unit, 0, reading,
			CASE mark WHEN 'before' THEN mark ELSE '' END
		FROM charges c WHERE owner = $1 AND `+latest+` AND agent = $4
		UNION ALL SELECT owner, $3, agent, `+now+`, '', 'cost', '', 0, 0, 'before'
		FROM sessions WHERE owner = $1 AND id = $2 AND imported`,
		string(from.id), string(to.id), to.agent)
}

// chargesOf returns the charges of a session that match a condition on $1, its owner, and $2.
func (tx *transaction) chargesOf(
	id sessionstore.ID, condition string,
) (charges []sessionstore.Charge, err error) {
	if _, err := tx.find(id, unlocked); err != nil {
		return nil, err
	}
	rows, err := tx.query(`
		SELECT c.at, c.source, c.meter, c.unit, c.amount, c.reading, c.mark, c.id, a.kind, a.profile
		FROM charges c JOIN agents a ON a.owner = c.owner AND a.key = c.agent
		WHERE c.owner = $1 AND c.id = $2 AND `+condition+` ORDER BY c.key`, string(id))
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanCharge)
}

func scanCharge(row pgx.CollectableRow) (c sessionstore.Charge, err error) {
	var at int64
	err = row.Scan(&at, &c.Source, (*string)(&c.Meter), &c.Unit, &c.Amount, &c.Reading,
		(*string)(&c.Mark), (*string)(&c.Session), &c.Agent.Kind, &c.Agent.Profile)
	c.At = rules.Time(at)
	return c, err
}

// Account implements [sessionstore.Ledger].
func (s *Store) Account(
	ctx context.Context, id sessionstore.ID,
) (account sessionstore.Account, err error) {
	err = s.read(ctx, func(tx *transaction) error {
		if account.Latest, err = tx.chargesOf(id, latest); err != nil {
			return err
		}
		return tx.row(`
			SELECT imported OR EXISTS (SELECT 1 FROM charges
				WHERE owner = $1 AND id = $2 AND mark = 'before')
			FROM sessions WHERE owner = $1 AND id = $2`, string(id)).Scan(&account.Before)
	})
	return account, err
}

// Charges implements [sessionstore.Ledger].
func (s *Store) Charges(
	ctx context.Context, id sessionstore.ID,
) (charges []sessionstore.Charge, err error) {
	err = s.read(ctx, func(tx *transaction) (err error) {
		charges, err = tx.chargesOf(id, "true")
		return err
	})
	return charges, err
}

// Sums implements [sessionstore.Ledger].
func (s *Store) Sums(
	ctx context.Context, q sessionstore.ChargeQuery,
) (sums []sessionstore.Charge, err error) {
	if q.Session != "" && q.Session.Validate() != nil {
		return nil, nil
	}
	since, until, every := q.Bounds()
	err = s.read(ctx, func(tx *transaction) error {
		rows, err := tx.query(`
			SELECT s.at, '', s.meter, s.unit, s.amount, 0::float8, s.mark, s.id, a.kind, a.profile
			FROM (
				SELECT owner, id, agent, meter, unit, mark, min(at) AS at, sum(amount) AS amount,
					min(key) AS first
				FROM charges WHERE owner = $1 AND at >= $2 AND at < $3
					AND ($4 = '' OR meter = $4) AND ($5 = '' OR id = $5)
				GROUP BY owner, id, agent, meter, unit, mark, at / $6::bigint
			) s JOIN agents a ON a.owner = s.owner AND a.key = s.agent ORDER BY s.first`,
			since, until, string(q.Meter), string(q.Session), every)
		if err != nil {
			return err
		}
		sums, err = pgx.CollectRows(rows, scanCharge)
		return err
	})
	return sums, err
}
