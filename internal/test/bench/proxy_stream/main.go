// Command proxy_stream is an ACP agent that does as little as an agent can: it answers each prompt
// with ten thousand updates, stamped with the time at which they were written. A prompt whose text
// is "paced" gets one every 200 microseconds on average, another as many as are taken.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"time"
)

const (
	updates = 10_000
	pace    = 200 * time.Microsecond
)

func main() {
	for lines := bufio.NewReader(os.Stdin); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct {
				SessionID string
				Prompt    []struct{ Text string }
			}
		}
		if json.Unmarshal(line, &m) != nil || m.ID == nil {
			continue
		}
		switch m.Method {
		case "initialize":
			answer(m.ID, `{"protocolVersion":1,"agentCapabilities":{}}`)
		case "session/new":
			answer(m.ID, `{"sessionId":"s"}`)
		case "session/prompt":
			stream(m.Params.SessionID, len(m.Params.Prompt) > 0 && m.Params.Prompt[0].Text == "paced")
			answer(m.ID, `{"stopReason":"end_turn"}`)
		default:
			answer(m.ID, `{}`)
		}
	}
}

func stream(session string, paced bool) {
	next := time.Now()
	for i := range updates {
		if paced {
			time.Sleep(time.Until(next))
		}
		next = next.Add(pace)
		fmt.Printf(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":%q,"update":{"sessionUpdate":"agent_message_chunk","messageId":"m%d","content":{"type":"text","text":"at %d "}}}}`+"\n",
			session, i/100, time.Now().UnixNano())
	}
}

func answer(id json.RawMessage, result string) {
	fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", id, result)
}
