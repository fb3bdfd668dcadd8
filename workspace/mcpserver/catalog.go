package mcpserver

import (
	"context"
	"sync"

	"github.com/acp-agent/acp-agent/discovery"
)

// found is the catalogue of a scope: scanned when it is first asked for, and looked at anew each time.
type found struct {
	mu      sync.Mutex
	catalog *discovery.Catalog
}

// catalog is what the scope's roots hold for agents, nil if nothing is accessible.
func (sc *scope) catalog(ctx context.Context) (*discovery.Catalog, error) {
	if sc.ws == nil {
		return nil, nil
	}
	sc.found.mu.Lock()
	defer sc.found.mu.Unlock()
	var err error
	var now *discovery.Catalog
	if sc.found.catalog == nil {
		now, err = discovery.Scan(ctx, sc.ws, discovery.Options{})
	} else {
		now, _, err = sc.found.catalog.Rescan(ctx)
	}
	if err != nil {
		return nil, err
	}
	sc.found.catalog = now
	return now, nil
}
