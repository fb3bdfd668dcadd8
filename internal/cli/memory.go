package cli

import (
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
	"time"
)

// boundGarbage makes the collector run more often while much memory is in use: messages of many
// megabytes would otherwise leave as much garbage. It gives memory back to the system when the
// program has been idle for a few seconds. GOMEMLIMIT takes precedence.
func boundGarbage() {
	if debug.SetMemoryLimit(-1) == math.MaxInt64 {
		debug.SetMemoryLimit(memoryLimit)
		g := &garbage{}
		g.idle = time.AfterFunc(math.MaxInt64, g.free)
		g.awaitNext()
	}
}

const (
	// memoryLimit is the amount of memory above which the collector runs more often.
	memoryLimit = 160 << 20
	// idleTime is how long after the last collection unused memory is given back.
	idleTime = 5 * time.Second
	// worthFreeing is how much memory the program must have before unused memory is given back.
	worthFreeing = 64 << 20
)

// garbage observes the collections of the program.
type garbage struct {
	idle    *time.Timer // calls free
	freeing atomic.Bool // the next collection is that of free
}

// collected is called after each collection. The memory limit is at least one and a half times the
// live memory, because below that the collector would run all the time.
func (g *garbage) collected() {
	live, used := measureMemory()
	debug.SetMemoryLimit(max(memoryLimit, live+live/2))
	if !g.freeing.Swap(false) && used >= worthFreeing {
		g.idle.Reset(idleTime)
	}
	g.awaitNext()
}

// awaitNext calls collected after the next collection. The runtime announces one only by the
// finalizer or cleanup of an object.
func (g *garbage) awaitNext() {
	runtime.AddCleanup(&struct{ next *garbage }{}, (*garbage).collected, g)
}

// free collects garbage and gives unused memory back to the system.
func (g *garbage) free() {
	g.freeing.Store(true)
	debug.FreeOSMemory()
}

// measureMemory returns how many bytes the program has from the system, and how many of them are
// live: what was reachable at the last collection, stacks, and what the runtime needs itself.
func measureMemory() (live, used int64) {
	samples := []metrics.Sample{
		{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"},
		{Name: "/memory/classes/heap/free:bytes"}, {Name: "/memory/classes/heap/unused:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/gc/heap/live:bytes"},
	}
	metrics.Read(samples)
	bytes := func(i int) int64 { return int64(samples[i].Value.Uint64()) }
	used = bytes(0) - bytes(1)
	return used - bytes(2) - bytes(3) - bytes(4) + bytes(5), used
}
