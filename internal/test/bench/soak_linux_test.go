package bench

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/acp-agent/acp-agent/acp/client"
)

var soakTime = flag.Duration("soak", 0, "how long BenchmarkSoak runs; make soak sets it")

const (
	soakWorkers  = 3                // in each window
	soakSessions = 40               // the most sessions in each window
	soakPeriods  = 4                // of which the results are compared
	soakPatience = 30 * time.Second // for each request
)

// BenchmarkSoak sends random requests to two windows that share a state directory: one searches
// files itself, one has an agent behind it. Several requests run at once, about sessions that
// others load, cancel or delete. It prints what the windows used and how long each method took in
// each quarter of the time, and fails if memory, descriptors or threads grow from the second
// quarter to the last.
func BenchmarkSoak(b *testing.B) {
	if *soakTime == 0 {
		b.Skip("runs with -soak 10m, as make soak does")
	}
	program, dir := build(b, "cmd/acp-agent"), b.TempDir()
	roots := make([]string, 4)
	for i := range roots {
		roots[i] = filepath.Join(dir, fmt.Sprint("root", i))
		check(b, os.MkdirAll(filepath.Join(roots[i], ".agents/skills/one"), 0o755))
		check(b, os.WriteFile(filepath.Join(roots[i], ".agents/skills/one/SKILL.md"),
			[]byte("---\nname: one\ndescription: A skill.\n---\nDo it.\n"), 0o644))
		for f := range 500 {
			name := filepath.Join(roots[i], fmt.Sprint("file", f))
			check(b, os.WriteFile(name, []byte("some text\n"), 0o644))
		}
	}
	state := []string{program, "--state-dir", filepath.Join(dir, "state")}
	windows := []*window{
		{name: "built in", command: state, roots: roots,
			prompts: []string{"text", "/roots", "/find file1*", "/skills", "/read file1", "/one"}},
		{name: "agent", command: slices.Concat(state, []string{"--", os.Args[0]}), roots: roots,
			prompts: []string{"say something", "stream 50", "stream 2000", "wait"}},
	}
	var running sync.WaitGroup
	for _, w := range windows {
		w.start(b)
		running.Go(func() { w.soak(*soakTime) })
	}
	running.Wait()
	for _, w := range windows {
		w.end(b)
	}
	var table strings.Builder
	table.WriteString("| window | | quarter 1 | 2 | 3 | 4 | after all |\n|---|---|---|---|---|---|---|\n")
	for _, w := range windows {
		w.print(&table)
	}
	fmt.Println(table.String())
	for _, w := range windows {
		w.compare(b)
	}
}

// window is a process of the program and its client, which sends random requests.
type window struct {
	name    string
	command []string
	roots   []string
	prompts []string

	cmd    *exec.Cmd
	client *client.Client
	stderr bytes.Buffer
	hangUp func() error
	began  time.Time
	whole  time.Duration

	mu       sync.Mutex
	sessions []string
	took     map[string]*[soakPeriods][]time.Duration // by method
	rejected map[string]int                           // how many were answered with an error
	broken   error                                    // a request was not answered
	used     [soakPeriods + 1]usage                   // the most in each period, and after the last one
}

// usage is what a process uses.
type usage struct{ kib, descriptors, threads, goroutines int }

func (u usage) max(o usage) usage {
	return usage{kib: max(u.kib, o.kib), descriptors: max(u.descriptors, o.descriptors),
		threads: max(u.threads, o.threads)}
}

func (w *window) start(b *testing.B) {
	b.Helper()
	w.took, w.rejected = make(map[string]*[soakPeriods][]time.Duration), make(map[string]int)
	w.cmd = exec.CommandContext(b.Context(), w.command[0], w.command[1:]...)
	w.cmd.Env = append(os.Environ(), role+"=scripted")
	w.cmd.Stderr = &w.stderr
	in, err := w.cmd.StdinPipe()
	check(b, err)
	out, err := w.cmd.StdoutPipe()
	check(b, err)
	check(b, w.cmd.Start())
	w.client = client.New(out, in, client.Options{})
	served := make(chan error, 1)
	go func() { served <- w.client.Serve(context.Background()) }()
	w.hangUp = func() error { return errors.Join(in.Close(), <-served) }
	_, err = w.client.Initialize(b.Context())
	check(b, err)
}

// soak sends requests for some time, and samples what the process uses.
func (w *window) soak(d time.Duration) {
	w.began, w.whole = time.Now(), d
	var workers sync.WaitGroup
	for range soakWorkers {
		workers.Go(func() {
			for w.period() < soakPeriods && w.err() == nil {
				w.step()
			}
		})
	}
	for p := w.period(); p < soakPeriods && w.err() == nil; p = w.period() {
		w.used[p] = w.used[p].max(w.sample())
		time.Sleep(min(time.Second, d/100))
	}
	workers.Wait()
}

// period returns the number of the current period; soakPeriods after the last one.
func (w *window) period() int {
	return min(int(time.Since(w.began)*soakPeriods/w.whole), soakPeriods)
}

func (w *window) err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.broken
}

// sample returns what the process uses now. The goroutines are not visible from outside.
func (w *window) sample() usage {
	var u usage
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", w.cmd.Process.Pid))
	for line := range strings.Lines(string(status)) {
		_, _ = fmt.Sscanf(line, "VmRSS: %d", &u.kib)
		_, _ = fmt.Sscanf(line, "Threads: %d", &u.threads)
	}
	descriptors, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", w.cmd.Process.Pid))
	u.descriptors = len(descriptors)
	return u
}

// step sends one random request, or a prompt and its cancel.
func (w *window) step() {
	id, count := w.pick()
	switch dice := rand.N(100); {
	case id == "" || dice < 10 && count < soakSessions:
		w.add(w.open("session/new", ""))
	case count > soakSessions || dice < 12:
		w.remove(id)
		w.call("session/delete", map[string]any{"sessionId": id})
	case dice < 50:
		w.prompt(id)
	case dice < 65:
		w.open("session/load", id)
	case dice < 72:
		w.open("session/resume", id)
	case dice < 80:
		w.add(w.open("session/fork", id))
	case dice < 90:
		w.call("session/list", map[string]any{"cwd": w.roots[0]})
	default:
		w.call("session/close", map[string]any{"sessionId": id})
	}
}

// pick returns one of the sessions, or "", and how many there are.
func (w *window) pick() (id string, count int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.sessions) == 0 {
		return "", 0
	}
	return w.sessions[rand.N(len(w.sessions))], len(w.sessions)
}

func (w *window) add(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if id != "" {
		w.sessions = append(w.sessions, id)
	}
}

func (w *window) remove(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sessions = slices.DeleteFunc(w.sessions, func(s string) bool { return s == id })
}

// open makes or opens a session with random folders. It returns the id of a new one.
func (w *window) open(method, id string) string {
	params := map[string]any{"cwd": w.roots[0], "mcpServers": []any{},
		"additionalDirectories": w.roots[1 : 1+rand.N(len(w.roots))]}
	if id != "" {
		params["sessionId"] = id
	}
	var opened struct{ SessionID string }
	_ = json.Unmarshal(w.call(method, params), &opened)
	return opened.SessionID
}

// prompt runs a turn, and cancels half of them and those that wait for it.
func (w *window) prompt(id string) {
	text := w.prompts[rand.N(len(w.prompts))]
	var cancelling sync.WaitGroup
	ended := make(chan struct{})
	if text == "wait" || rand.N(2) == 0 {
		cancelling.Go(func() { w.cancel(id, ended) })
	}
	w.call("session/prompt", map[string]any{"sessionId": id,
		"prompt": []any{map[string]string{"type": "text", "text": text}}})
	close(ended)
	cancelling.Wait()
}

// cancel cancels a session's turn after some milliseconds, and again until it has ended: another
// worker's turn may have been the first one's.
func (w *window) cancel(id string, ended <-chan struct{}) {
	for pause := rand.N(20 * time.Millisecond); ; pause += 50 * time.Millisecond {
		select {
		case <-ended:
			return
		case <-time.After(pause):
			_ = w.client.Cancel(context.Background(), id) // call notices a broken connection
		}
	}
}

// call sends a request and returns the result, or nil after an error of the agent.
func (w *window) call(method string, params map[string]any) json.RawMessage {
	raw, err := json.Marshal(params)
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), soakPatience)
	defer cancel()
	var result json.RawMessage
	period := min(w.period(), soakPeriods-1)
	took := timed(func() { result, err = w.client.Call(ctx, method, raw)() })
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.took[method] == nil {
		w.took[method] = new([soakPeriods][]time.Duration)
	}
	w.took[method][period] = append(w.took[method][period], took)
	rejection, isRejection := errors.AsType[*client.Error](err)
	switch {
	case err == nil:
	case isRejection && rejection.Code != -32603:
		w.rejected[method]++
	default:
		w.broken = cmp.Or(w.broken, fmt.Errorf("%s: %s %s: %w", w.name, method, raw, err))
	}
	return result
}

// end deletes all sessions, samples the process, and has it write its goroutines and end.
func (w *window) end(b *testing.B) {
	b.Helper()
	check(b, w.broken)
	for _, id := range w.sessions {
		w.call("session/delete", map[string]any{"sessionId": id})
	}
	check(b, w.broken)
	time.Sleep(10 * time.Second) // memory is returned to the system when the program has been idle
	last := w.sample()
	check(b, w.cmd.Process.Signal(syscall.SIGQUIT))
	check(b, w.hangUp())
	_ = w.cmd.Wait() // of the signal
	last.goroutines = bytes.Count(w.stderr.Bytes(), []byte("\ngoroutine "))
	w.used[soakPeriods] = last
}

// print writes rows of the table.
func (w *window) print(table *strings.Builder) {
	row := func(what string, cell func(u usage) int) {
		fmt.Fprintf(table, "| %s | %s |", w.name, what)
		for _, u := range w.used {
			fmt.Fprintf(table, " %d |", cell(u))
		}
		fmt.Fprintln(table)
	}
	row("memory, MiB", func(u usage) int { return u.kib >> 10 })
	row("descriptors", func(u usage) int { return u.descriptors })
	row("threads", func(u usage) int { return u.threads })
	for _, method := range slices.Sorted(maps.Keys(w.took)) {
		fmt.Fprintf(table, "| %s | `%s`, median and p99 in ms |", w.name, method)
		requests := 0
		for _, took := range w.took[method] {
			requests += len(took)
			if len(took) == 0 {
				fmt.Fprint(table, " |")
				continue
			}
			fmt.Fprintf(table, " %.1f %.0f |", ms(quantile(took, 0.5)), ms(quantile(took, 0.99)))
		}
		fmt.Fprintf(table, " %d requests, %d rejected |\n", requests, w.rejected[method])
	}
	fmt.Fprintf(table, "| %s | goroutines | | | | | %d |\n", w.name, w.used[soakPeriods].goroutines)
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// compare fails the benchmark if the last quarter used more than the second one. What the store
// and the runtime keep varies by a few MiB.
func (w *window) compare(b *testing.B) {
	b.Helper()
	second, last := w.used[1], w.used[soakPeriods-1]
	if last.kib > second.kib*5/4+4<<10 || last.descriptors > second.descriptors*5/4+16 ||
		last.threads > second.threads+8 {
		b.Errorf("%s: used %+v in the second quarter, and %+v in the last one", w.name, second, last)
	}
}
