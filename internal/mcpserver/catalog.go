package mcpserver

import (
	"context"

	"github.com/acp-agent/acp-agent/discovery"
)

// found is the catalogue of a scope: scanned when it is first asked for, and looked at anew each time. Whoever holds it
// has received from it; a wait for it ends with a context.
type found chan *discovery.Catalog

func newFound() found {
	f := make(found, 1)
	f <- nil
	return f
}

// catalog is what the scope's roots hold for agents, nil if nothing is accessible.
func (sc *scope) catalog(ctx context.Context) (*discovery.Catalog, error) {
	if sc.ws == nil {
		return nil, nil
	}
	var known *discovery.Catalog
	select {
	case known = <-sc.found:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	now, err := known, error(nil)
	if known == nil {
		now, err = discovery.Scan(ctx, sc.ws, discovery.Options{})
	} else {
		now, _, err = known.Rescan(ctx)
	}
	if err != nil {
		sc.found <- known
		return nil, err
	}
	sc.found <- now
	return now, nil
}
