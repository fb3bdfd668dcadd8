// Package scripted lets a test binary act as an agent that follows a script. The package must only be
// imported by tests.
package scripted

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/internal/test/proctest"
)

// Command returns a command that runs this binary as an agent that follows a script, and the record
// of the lines that it receives. The script has one command per line:
//
//	await METHOD      reads up to a message with this method
//	await reply ID    reads up to the answer to our request ID
//	replies N         reads up to the Nth answer from here
//	send LINE         writes a line, in which $METHOD$ is the id of the last message awaited with
//	                  it, $env:NAME$ a variable, and $long$ as much text as a line may have
//	answer METHOD X   answers the last message awaited with METHOD with the result X
//	refuse METHOD X   the same with the error X
//	both A B          writes two lines in one write; "} {" is between them
//	repeat N LINE     the same, N times, in which $i is 0, 1, 2 …
//	stderr LINE
//	stderr of FILE    copies a file to stderr; it is not taken for a secret, as text here may be
//	close             closes stdout
//	block             reads nothing more until it is killed
//	nap               reads nothing for a moment
//	until FILE        reads nothing until the file is there
//	exit STATUS
//
// At its end it reads until its input ends.
func Command(t testing.TB, script string) (process.Command, proctest.Record) {
	t.Helper()
	record := proctest.NewRecord(t)
	return process.Command{Path: proctest.Executable(), Name: Role,
		Env: proctest.Env(Role, scriptVariable+"="+script, record.Env())}, record
}

// Role is the role of a scripted agent; see [proctest.Main].
const Role = "scripted"

const scriptVariable = "ACP_TEST_SCRIPT"

var variable = regexp.MustCompile(`\$env:(\w+)\$`)

// agent is the agent that follows a script.
type agent struct {
	in  *proctest.Input
	ids map[string]string
}

// Play runs the agent and returns the exit status.
func Play() int {
	in, err := proctest.OpenInput()
	if err != nil {
		return 99
	}
	a := &agent{in: in, ids: make(map[string]string)}
	for line := range strings.Lines(os.Getenv(scriptVariable)) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch word {
		case "":
		case "await":
			a.await(rest)
		case "replies":
			n, _ := strconv.Atoi(rest)
			for range n {
				a.await("")
			}
		case "send":
			fmt.Println(a.filled(rest))
		case "answer", "refuse":
			method, value, _ := strings.Cut(rest, " ")
			member := map[string]string{"answer": "result", "refuse": "error"}[word]
			fmt.Printf("{\"jsonrpc\":\"2.0\",\"id\":%s,%q:%s}\n", a.ids[method], member,
				a.filled(value))
		case "both":
			fmt.Print(strings.Replace(a.filled(rest), "} {", "}\n{", 1) + "\n")
		case "repeat":
			times, line, _ := strings.Cut(rest, " ")
			n, _ := strconv.Atoi(times)
			for i := range n {
				fmt.Println(strings.ReplaceAll(a.filled(line), "$i", strconv.Itoa(i)))
			}
		case "stderr":
			if file, ok := strings.CutPrefix(rest, "of "); ok {
				content, _ := os.ReadFile(file)
				_, _ = os.Stderr.Write(content)
				continue
			}
			fmt.Fprintln(os.Stderr, rest)
		case "close":
			_ = os.Stdout.Close()
		case "block":
			for { // not select {}, at which a program of one goroutine ends
				time.Sleep(time.Hour)
			}
		case "nap":
			time.Sleep(50 * time.Millisecond)
		case "until":
			for _, err := os.Stat(rest); err != nil; _, err = os.Stat(rest) {
				time.Sleep(time.Millisecond)
			}
		case "exit":
			status, _ := strconv.Atoi(rest)
			return status
		default:
			return 98
		}
	}
	_, _ = io.Copy(io.Discard, a.in)
	return 0
}

func (a *agent) await(what string) {
	for {
		line, err := a.in.Line()
		if err != nil {
			os.Exit(0)
		}
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		if json.Unmarshal(line, &m) != nil {
			os.Exit(96)
		}
		a.ids[m.Method] = string(m.ID)
		if m.Method == what || m.Method == "" && what == "reply "+string(m.ID) {
			return
		}
	}
}

func (a *agent) filled(line string) string {
	line = variable.ReplaceAllStringFunc(line,
		func(v string) string { return os.Getenv(variable.FindStringSubmatch(v)[1]) })
	if before, after, ok := strings.Cut(line, "$long$"); ok {
		line = before + strings.Repeat("x", 64<<20) + after
	}
	for method, id := range a.ids {
		line = strings.ReplaceAll(line, "$"+method+"$", id)
	}
	return line
}
