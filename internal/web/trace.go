package web

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/acp-agent/acp-agent/internal/text"
)

// trace is a file with messages.
type trace struct {
	Name     string    `json:"name"`
	Size     int64     `json:"size"`
	Modified time.Time `json:"modified"`

	path string
}

// traces answers with the files with traces.
func (o Options) traces(context.Context, url.Values) (any, error) { return o.traceFiles() }

// traceFiles returns the files with traces, the newest first.
func (o Options) traceFiles() ([]trace, error) {
	found := []trace{}
	for _, path := range o.Traces {
		info, err := os.Stat(path)
		if err != nil {
			continue // it was there at the start
		}
		if !info.IsDir() {
			found = append(found, newTrace(path, info))
			continue
		}
		files, err := os.ReadDir(path)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			path := filepath.Join(path, file.Name())
			info, err := file.Info()
			if err == nil && info.Mode().IsRegular() && isTrace(path) {
				found = append(found, newTrace(path, info))
			}
		}
	}
	slices.SortStableFunc(found, func(a, b trace) int { return b.Modified.Compare(a.Modified) })
	return found, nil
}

func newTrace(path string, info os.FileInfo) trace {
	return trace{Name: text.Printable(path), Size: info.Size(), Modified: info.ModTime(),
		path: path}
}

// isTrace reports whether a file begins like a trace: with a time, a process and an arrow.
func isTrace(path string) bool {
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	begin := make([]byte, 200)
	n, _ := io.ReadFull(file, begin)
	words := strings.SplitN(string(begin[:n]), " ", 4)
	_, err = time.Parse(time.RFC3339Nano, words[0])
	return err == nil && len(words) == 4 && (words[2] == "->" || words[2] == "<-")
}

// openTrace opens the trace that a request names.
func (o Options) openTrace(q url.Values) (*os.File, error) {
	all, err := o.traceFiles()
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(t trace) bool { return t.Name == q.Get("name") })
	if i < 0 {
		return nil, fmt.Errorf("%w: there is no such trace", os.ErrNotExist)
	}
	return os.Open(all[i].path)
}

// serveTrace answers with a trace, or the part of it that the page asks for.
func (o Options) serveTrace(w http.ResponseWriter, r *http.Request) {
	file, err := o.openTrace(r.URL.Query())
	if err != nil {
		fail(w, err)
		return
	}
	defer file.Close()
	http.ServeContent(w, r, "trace.txt", time.Time{}, file)
}
