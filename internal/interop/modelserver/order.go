package modelserver

import (
	"encoding/json"
	"strings"
)

// Done is what the model says when it has carried out its orders, or was given none.
const Done = "All orders are carried out."

// Title is what the model says to an agent that offers no tools.
const Title = "Scripted title"

// mark begins a line of a prompt that holds an order.
const mark = "model: "

// Order is one thing for the model to do. [Say], [Wait], [Read], [Edit], [Write] and [Use] make one.
type Order struct {
	// Do is "say", "wait", "read", "edit", "write" or "use".
	Do string `json:"do"`
	// Path is the file, in the form that the tool is to be given.
	Path string `json:"path,omitempty"`
	// Old is the text that an edit replaces.
	Old string `json:"old,omitempty"`
	// Text is what to say, the new text of an edit, or the content to write.
	Text string `json:"text,omitempty"`
	// Tool is the name of the tool to use.
	Tool string `json:"tool,omitempty"`
	// Server is the MCP server whose tool is to be called, "" for the agent's own.
	Server string `json:"server,omitempty"`
}

// By is the order with the tool of an MCP server: agents put the server's name before that of its tool.
func (o Order) By(server string) Order {
	o.Server = server
	return o
}

// Say has the model say a text.
func Say(text string) Order { return Order{Do: "say", Text: text} }

// Read has it call the tool that reads a file.
func Read(path string) Order { return Order{Do: "read", Path: path} }

// Edit has it call the tool that replaces a text in a file.
func Edit(path, old, text string) Order { return Order{Do: "edit", Path: path, Old: old, Text: text} }

// Wait has it say nothing until the agent hangs up, as it does when its turn is cancelled.
func Wait() Order { return Order{Do: "wait"} }

// Write has it call the tool that writes a whole file.
func Write(path, content string) Order { return Order{Do: "write", Path: path, Text: content} }

// Use has it call a tool by its name, with a path if the tool takes one.
func Use(tool, path string) Order { return Order{Do: "use", Tool: tool, Path: path} }

// Prompt is a prompt that begins with some words and has the model carry out orders, one after the other.
func Prompt(words string, orders ...Order) string {
	var b strings.Builder
	b.WriteString(words)
	for _, o := range orders {
		text, err := json.Marshal(o)
		if err != nil {
			panic(err) // strings alone
		}
		b.WriteString("\n" + mark)
		b.Write(text)
	}
	return b.String()
}

// orders are the last orders in a text: the last lines in a row that hold one. An agent may put other text
// before and after them, and an older conversation with its orders before.
func orders(text string) []Order {
	var found []Order
	inRow := false
	for line := range strings.Lines(text) {
		var o Order
		rest, marked := strings.CutPrefix(strings.TrimSpace(line), mark)
		if !marked || json.Unmarshal([]byte(rest), &o) != nil {
			inRow = false
			continue
		}
		if !inRow {
			found = nil
		}
		found, inRow = append(found, o), true
	}
	return found
}

// act is what the model does next: it says something, waits, or calls a tool.
type act struct {
	say  string
	wait bool
	tool Tool            // without a name to say something
	args json.RawMessage // an object
}

// next decides what the model does by the conversation alone.
func (r Request) next() act {
	if len(r.Tools) == 0 {
		return act{say: Title}
	}
	done := 0
	for i := len(r.Items) - 1; i >= 0; i-- {
		item := r.Items[i]
		if item.Kind == Result || item.Kind == Said {
			done++
		}
		if item.Kind != User {
			continue
		}
		if given := orders(item.Text); len(given) > 0 {
			if done >= len(given) {
				break
			}
			return r.carryOut(given[done])
		}
	}
	return act{say: Done}
}
