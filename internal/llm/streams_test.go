package llm

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/acp-agent/acp-agent/internal/test/volume"
)

var update = flag.Bool("update", false, "rewrite testdata/*.golden")

// eachStream runs a subtest for each recorded stream, and those of shapes.txt. golden is the file
// with what a recorded one means, which is want.
func eachStream(t *testing.T, test func(t *testing.T, golden string, stream []byte, want string)) {
	files, err := filepath.Glob("testdata/*.sse")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	read := func(file string) []byte {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return content
	}
	for _, file := range files {
		name := strings.TrimSuffix(file, ".sse")
		t.Run(filepath.Base(name), func(t *testing.T) {
			test(t, name+".golden", read(file), string(read(name+".golden")))
		})
	}
	for _, shape := range strings.Split(string(read("testdata/shapes.txt")), "\n=== ")[1:] {
		name, shape, _ := strings.Cut(shape, "\n")
		stream, want, _ := strings.Cut(shape, "---\n")
		t.Run(name, func(t *testing.T) { test(t, "", []byte(stream), want) })
	}
}

// TestStreams replays the streams that servers are known to send. The comments at the top of each
// say where it is from.
func TestStreams(t *testing.T) {
	eachStream(t, func(t *testing.T, golden string, stream []byte, want string) {
		if *update && golden != "" {
			want = replay(stream, bytes.NewReader(stream))
			if err := os.WriteFile(golden, []byte(want), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		crlf := bytes.ReplaceAll(stream, []byte("\n"), []byte("\r\n"))
		for how, from := range map[string]io.Reader{
			"whole":        bytes.NewReader(stream),
			"in bytes":     iotest.OneByteReader(bytes.NewReader(stream)),
			"in halves":    iotest.HalfReader(bytes.NewReader(stream)),
			"with CR LF":   iotest.OneByteReader(bytes.NewReader(crlf)),
			"with its end": iotest.DataErrReader(bytes.NewReader(stream)),
		} {
			if got := replay(stream, from); got != want {
				t.Errorf("%s:\n%s\nwant:\n%s", how, got, want)
			}
		}
	})
}

// A stream that is cut never says more than the whole one, ends in an error unless everything but
// the usage has arrived, and never has a tool call that is not complete.
//
// Clause B4.
func TestCutStreams(t *testing.T) {
	eachStream(t, func(t *testing.T, _ string, stream []byte, _ string) {
		whole, end := said(replay(stream, bytes.NewReader(stream)))
		for at := 0; at < len(stream); at += volume.Of(23, 7) {
			part, partEnd := said(replay(stream, bytes.NewReader(stream[:at])))
			switch {
			case !strings.HasPrefix(whole, part):
				t.Errorf("cut at %d:\n%s\nwant a part of:\n%s", at, part, whole)
			case !strings.HasPrefix(partEnd, "error") && (part != whole || strings.HasPrefix(end,
				"error")):
				t.Errorf("cut at %d: ended with %q after %q", at, partEnd, part)
			}
		}
	})
}

// said separates what replay returned: the lines for all events but the last, and the last.
func said(events string) (before, last string) {
	events = strings.TrimSuffix(events, "\n")
	at := strings.LastIndexByte(events, '\n') + 1
	return events[:at], events[at:]
}

// replay returns what the client makes of a stream that it reads from a reader, one line for each
// event.
func replay(stream []byte, from io.Reader) string {
	m := Model{API: OpenAI, Name: "model"}
	has := func(sign string) bool { return bytes.Contains(stream, []byte(sign)) }
	switch {
	case has(`"response.`), has(`"object":"response"`):
		m.API = Responses
	case has(`"message_start"`), has(`"content_block_start"`), has(`"type":"message"`):
		m.API = Anthropic
	}
	var b strings.Builder
	failed := New(m).read(bodyOf(from), variant{}, func(e Event) bool {
		switch e := e.(type) {
		case TextDelta:
			fmt.Fprintf(&b, "text %q\n", string(e))
		case ThinkingDelta:
			fmt.Fprintf(&b, "thinking %q\n", string(e))
		case Thinking:
			fmt.Fprintf(&b, "thought %q signature=%q redacted=%q%s\n", e.Text, e.Signature,
				e.Redacted, attached(e.Attached))
		case CallDelta: // the call follows
		case ToolCall:
			if !bytes.Contains(stream, []byte(`"`+e.ID+`"`)) {
				e.ID = "(new)"
			}
			fmt.Fprintf(&b, "call %s %s %s%s\n", e.ID, e.Name, e.Arguments, attached(e.Attached))
		case Finish:
			if e.Said != "" {
				fmt.Fprintf(&b, "reason %q\n", e.Said)
			}
			fmt.Fprintf(&b, "finish %s input=%d cached=%d output=%d\n", e.Reason, e.Usage.Input,
				e.Usage.Cached, e.Usage.Output)
		default:
			fmt.Fprintf(&b, "%#v\n", e)
		}
		return true
	})
	if failed != nil {
		fmt.Fprintf(&b, "error %s: %s\n", failed.why.Kind, failed.why.Message)
	}
	return b.String()
}

func attached(members json.RawMessage) string {
	if members == nil {
		return ""
	}
	return " attached=" + string(members)
}

// A stream means the same however it arrives, ends in one finish or one error, and its tool calls
// have arguments.
func FuzzStreams(f *testing.F) {
	files, err := filepath.Glob("testdata/*.sse")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		stream, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(stream)
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		for _, api := range []API{OpenAI, Responses, Anthropic} {
			finished := 0
			body := bodyOf(bytes.NewReader(stream))
			failed := New(Model{API: api}).read(body, variant{}, func(e Event) bool {
				switch e := e.(type) {
				case Finish:
					finished++
				case ToolCall:
					if e.ID == "" || e.Arguments == "" {
						t.Errorf("call %+v", e)
					}
				}
				return true
			})
			if (failed != nil) == (finished == 1) || finished > 1 {
				t.Errorf("%s: finished %d times, failure %v", api, finished, failed)
			}
		}
		if whole, bytewise := replay(stream, bytes.NewReader(stream)), replay(stream,
			iotest.OneByteReader(bytes.NewReader(stream))); whole != bytewise {
			t.Errorf("whole:\n%s\nbyte by byte:\n%s", whole, bytewise)
		}
	})
}
