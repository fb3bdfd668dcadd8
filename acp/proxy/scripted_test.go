package proxy_test

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/acp-agent/acp-agent/internal/test/proctest"
)

// The test binary acts as an agent that follows a script of one command per line, and records each
// line that it receives.
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
const (
	scriptedRole   = "scripted"
	scriptVariable = "ACP_PROXY_TEST_SCRIPT"
)

var variable = regexp.MustCompile(`\$env:(\w+)\$`)

type scripted struct {
	in  *proctest.Input
	ids map[string]string
}

// followScript runs the agent and returns the exit status.
func followScript(in *proctest.Input) int {
	s := &scripted{in: in, ids: make(map[string]string)}
	for line := range strings.Lines(os.Getenv(scriptVariable)) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch word {
		case "":
		case "await":
			s.await(rest)
		case "replies":
			n, _ := strconv.Atoi(rest)
			for range n {
				s.await("")
			}
		case "send":
			fmt.Println(s.filled(rest))
		case "answer", "refuse":
			method, value, _ := strings.Cut(rest, " ")
			member := map[string]string{"answer": "result", "refuse": "error"}[word]
			fmt.Printf("{\"jsonrpc\":\"2.0\",\"id\":%s,%q:%s}\n", s.ids[method], member,
				s.filled(value))
		case "both":
			fmt.Print(strings.Replace(s.filled(rest), "} {", "}\n{", 1) + "\n")
		case "repeat":
			times, line, _ := strings.Cut(rest, " ")
			n, _ := strconv.Atoi(times)
			for i := range n {
				fmt.Println(strings.ReplaceAll(s.filled(line), "$i", strconv.Itoa(i)))
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
	_, _ = io.Copy(io.Discard, s.in)
	return 0
}

func (s *scripted) await(what string) {
	for {
		line, err := s.in.Line()
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
		s.ids[m.Method] = string(m.ID)
		if m.Method == what || m.Method == "" && what == "reply "+string(m.ID) {
			return
		}
	}
}

func (s *scripted) filled(line string) string {
	line = variable.ReplaceAllStringFunc(line,
		func(v string) string { return os.Getenv(variable.FindStringSubmatch(v)[1]) })
	if before, after, ok := strings.Cut(line, "$long$"); ok {
		line = before + strings.Repeat("x", 64<<20) + after
	}
	for method, id := range s.ids {
		line = strings.ReplaceAll(line, "$"+method+"$", id)
	}
	return line
}
