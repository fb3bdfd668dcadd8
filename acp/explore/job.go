package explore

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime/debug"
	"slices"
)

// hit is a found line.
type hit struct {
	number  int
	excerpt string
}

// finding is what was found in one file: its best hits, all of one score.
type finding struct {
	rel   string
	hits  []hit
	score int
}

// job is a few files of one folder, to be searched by a worker.
type job struct {
	folder *folder
	files  []string

	// What follows is the worker's until done is closed.
	done     chan struct{}
	findings []finding
	skipped  skipped
	panicked string
}

// filesPerJob keeps the cost of handing out a job small against that of doing it.
const filesPerJob = 8

// jobs divides a folder. Each job holds it from the moment that it is yielded.
func jobs(f *folder) iter.Seq[*job] {
	return func(yield func(*job) bool) {
		for files := range slices.Chunk(f.files, filesPerJob) {
			f.hold()
			if !yield(&job{folder: f, files: files, done: make(chan struct{})}) {
				return
			}
		}
	}
}

// worker searches files, one after another.
type worker struct {
	query       query
	maxFileSize int64
	maxHits     int
	buffer      []byte
}

// do does a job, and always finishes it. Once ctx has ended it leaves out what is left.
func (w *worker) do(ctx context.Context, j *job) {
	defer close(j.done)
	defer j.folder.release()
	// A panic goes to the turn's own goroutine, where the adapter answers for it.
	defer func() {
		if p := recover(); p != nil {
			j.panicked = fmt.Sprintf("%v\n%s", p, debug.Stack())
		}
	}()
	for _, name := range j.files {
		if ctx.Err() != nil {
			return
		}
		found, err := w.search(ctx, j.folder, name)
		switch {
		case err == nil:
			if len(found.hits) > 0 {
				j.findings = append(j.findings, found)
			}
		case errors.Is(err, errBinary):
			j.skipped.binary++
		case errors.Is(err, errLarge):
			j.skipped.large++
		case ctx.Err() != nil:
			return
		default:
			j.skipped.unreadable(j.folder.root.show(j.folder.join(name)), err)
		}
	}
}

func (w *worker) search(ctx context.Context, f *folder, name string) (finding, error) {
	found := finding{rel: f.join(name)}
	file, err := f.dir.Open(name)
	if err != nil {
		return found, err
	}
	defer file.Close()
	w.buffer, err = readText(ctx, file, w.maxFileSize, w.buffer)
	if err != nil {
		return found, err
	}
	// One more than are shown, to know that there are more.
	enough := w.maxHits + 1
	err = w.query.find(ctx, w.buffer, func(number int, line []byte, at, score int) bool {
		if score > found.score {
			found.score, found.hits = score, nil
		}
		if score == found.score && len(found.hits) < enough {
			found.hits = append(found.hits, hit{number, excerpt(string(line), at)})
		}
		return len(found.hits) < enough || found.score < w.query.full()
	})
	return found, err
}
