package explore

import (
	"context"
	goruntime "runtime"
	"sync"
)

// crew searches files in parallel and gives out what it finds in the order of the files.
type crew struct {
	workers int
	make    func() *worker
	// emit is called for each job that is done, in order, on the caller's goroutine.
	emit func(*job) error
	// idle is called before the caller waits for a job.
	idle func() error
}

// search searches all files of the tree. The caller's goroutine walks the tree and gives out
// results; the workers read. They are gone when search returns. The error is emit's, idle's, the
// context's, or workspace.ErrClosed.
func (c *crew) search(ctx context.Context, files *tree) error {
	ctx, stop := context.WithCancel(ctx)
	// A worker that is slow with one job must not stop the others: some are kept ahead.
	ahead := 4 * c.workers
	todo := make(chan *job, ahead)
	var group sync.WaitGroup
	for range c.workers {
		group.Go(func() {
			w := c.make()
			for j := range todo {
				w.do(ctx, j)
			}
		})
	}
	defer group.Wait()
	defer close(todo)
	defer stop()

	var queue []*job
	err := files.walk(ctx, func(f *folder) error {
		for j := range jobs(f) {
			queue = append(queue, j)
			todo <- j // never waits: it takes as many as the queue holds
			for len(queue) == ahead || len(queue) > 0 && isDone(queue[0]) {
				if err := c.next(ctx, queue[0]); err != nil {
					return err
				}
				queue = queue[1:]
			}
		}
		return nil
	})
	for ; err == nil && len(queue) > 0; queue = queue[1:] {
		err = c.next(ctx, queue[0])
	}
	return err
}

// next waits for a job and gives out what it found.
func (c *crew) next(ctx context.Context, j *job) error {
	if !isDone(j) {
		if err := c.idle(); err != nil {
			return err
		}
		<-j.done
	}
	if j.panicked != "" {
		panic(j.panicked)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return c.emit(j)
}

func isDone(j *job) bool {
	select {
	case <-j.done:
		return true
	default:
		return false
	}
}

// workers is how many files are read at once.
func workers() int { return goruntime.GOMAXPROCS(0) }
