package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
)

// An event is a line of go test -json.
type event struct {
	Action      string
	Package     string
	ImportPath  string // of a package that is compiled
	Test        string
	Elapsed     float64 // in seconds
	Output      string
	FailedBuild string
}

// A testID names a test, or with test "" a package.
type testID struct{ pkg, test string }

func (id testID) String() string {
	name := strings.TrimPrefix(id.pkg, module+"/")
	if id.test != "" {
		name += " " + id.test
	}
	return name
}

// duration is how long a test took.
type duration struct {
	name    string
	seconds float64
}

// A report collects what happened in several runs of go test.
type report struct {
	out      io.Writer
	mode     string // of the current run, for the names of tests
	output   map[testID]*bytes.Buffer
	passed   int
	failed   []string
	slow     []duration
	leftOut  map[string]int // tests, by what they need
	packages map[string]bool
}

func newReport(out io.Writer) *report {
	return &report{out: out, output: make(map[testID]*bytes.Buffer), leftOut: make(map[string]int),
		packages: make(map[string]bool)}
}

// section begins a run of another kind.
func (r *report) section(mode string) {
	fmt.Fprintf(r.out, "\n%s:\n", mode)
	r.mode = " (" + mode + ")"
}

// leaveOut notes that something is missing that go test does not tell about.
func (r *report) leaveOut(name string) { r.leftOut[name]++ }

// read reads the output of go test.
func (r *report) read(in io.Reader) error {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			r.line(line)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (r *report) line(line []byte) {
	var e event
	if json.Unmarshal(line, &e) != nil {
		fmt.Fprintf(r.out, "%s", line)
		return
	}
	id := testID{cmp.Or(e.Package, e.ImportPath), e.Test}
	switch e.Action {
	case "output", "build-output":
		if r.output[id] == nil {
			r.output[id] = new(bytes.Buffer)
		}
		r.output[id].WriteString(e.Output)
	case "pass", "skip", "fail":
		if e.Test == "" {
			r.packageEnded(id, e)
		} else {
			r.testEnded(id, e)
		}
	}
}

// need matches what package needs prints about a test that was skipped.
var need = regexp.MustCompile(`\bneeds ([\w.+-]+): `)

func (r *report) testEnded(id testID, e event) {
	r.packages[id.pkg] = true
	if !strings.Contains(id.test, "/") {
		r.slow = append(r.slow, duration{id.String() + r.mode, e.Elapsed})
	}
	switch e.Action {
	case "pass":
		r.passed++
	case "skip":
		if m := need.FindSubmatch(r.takeOutput(id)); m != nil {
			r.leftOut[string(m[1])]++
		}
	case "fail":
		r.failed = append(r.failed, id.String()+r.mode)
		fmt.Fprintf(r.out, "%s", r.takeOutput(id))
	}
	delete(r.output, id)
}

// packageEnded prints a line about a package, and what belongs to no test that ended if it failed: a
// panic, a timeout, or errors of the compiler.
func (r *report) packageEnded(id testID, e event) {
	own := r.takeOutput(id)
	name := strings.TrimPrefix(id.pkg, module+"/")
	switch {
	case bytes.Contains(own, []byte("[no test files]")):
		return
	case e.Action != "fail":
		note := ""
		if bytes.Contains(own, []byte("(cached)")) {
			note = " (cached)"
		}
		fmt.Fprintf(r.out, "ok    %-40s %6.1f s%s\n", name, e.Elapsed, note)
		return
	}
	fmt.Fprintf(r.out, "%s", r.takeOutput(testID{pkg: e.FailedBuild}))
	unfinished := false
	for other := range r.output {
		if other.pkg == id.pkg {
			unfinished = true
			r.failed = append(r.failed, other.String()+r.mode+", which has not ended")
			fmt.Fprintf(r.out, "%s", r.takeOutput(other))
		}
	}
	fmt.Fprintf(r.out, "%sFAIL  %-40s %6.1f s\n", own, name, e.Elapsed)
	inPackage := func(failed string) bool { return strings.HasPrefix(failed, name+" ") }
	if !unfinished && !slices.ContainsFunc(r.failed, inPackage) {
		r.failed = append(r.failed, name+r.mode)
	}
}

// takeOutput returns what a test has printed, once.
func (r *report) takeOutput(id testID) []byte {
	b := r.output[id]
	delete(r.output, id)
	if b == nil {
		return nil
	}
	return b.Bytes()
}

// err returns an error if a test has failed.
func (r *report) err() error {
	if len(r.failed) == 0 {
		return nil
	}
	return errors.New("tests failed")
}

// slowest is how many tests print names.
const slowest = 10

// print prints what is to be known at the end.
func (r *report) print(took time.Duration) {
	slices.SortStableFunc(r.slow, func(a, b duration) int { return cmp.Compare(b.seconds, a.seconds) })
	fmt.Fprintf(r.out, "\nThe slowest tests:\n")
	for _, d := range r.slow[:min(slowest, len(r.slow))] {
		fmt.Fprintf(r.out, "%7.1f s  %s\n", d.seconds, d.name)
	}
	if len(r.leftOut) > 0 {
		fmt.Fprintf(r.out, "\nLeft out on this machine:\n")
		for _, name := range slices.Sorted(maps.Keys(r.leftOut)) {
			fmt.Fprintf(r.out, "  %s\n", describe(name, r.leftOut[name]))
		}
	}
	if len(r.failed) > 0 {
		fmt.Fprintf(r.out, "\nFailed:\n")
		for _, name := range r.failed {
			fmt.Fprintf(r.out, "  %s\n", name)
		}
	}
	fmt.Fprintf(r.out, "\nPassed: %d. Failed: %d. Packages: %d. Time: %v.\n",
		r.passed, len(r.failed), len(r.packages), took.Round(time.Second))
}
