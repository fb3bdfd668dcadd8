package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/acp-agent/acp-agent/workspace"
)

// Tool is one tool of a [Set]. It is immutable and safe for concurrent use.
type Tool struct {
	// Name is what it is called by, and Title what a person sees.
	Name, Title string
	// Description tells a model what it does and when to use it.
	Description string
	// InputSchema and OutputSchema are JSON schemas (2020-12) of its arguments and of Result.Structured.
	InputSchema, OutputSchema json.RawMessage
	Annotations               Annotations

	call func(context.Context, json.RawMessage) (Result, error)
}

// Annotations say what a call can do, in the terms of MCP.
type Annotations struct {
	// ReadOnly: it changes nothing.
	ReadOnly bool
	// Destructive: it can take away what was there.
	Destructive bool
	// Idempotent: a second call with the same arguments changes nothing more.
	Idempotent bool
}

// Result is what a call gives: the same twice.
type Result struct {
	// Text is for a model or a person.
	Text string
	// Structured is a JSON object, valid by the tool's OutputSchema.
	Structured json.RawMessage
}

// Call calls the tool with a JSON object; nothing counts as an empty one. Arguments are decoded strictly. The error
// is an *[ArgumentError], an *[Error] of what was done, or the context's.
func (t Tool) Call(ctx context.Context, arguments json.RawMessage) (Result, error) {
	if ctx.Err() != nil {
		return Result{}, context.Cause(ctx)
	}
	return t.call(ctx, arguments)
}

// answer is what a tool gives before it is encoded.
type answer interface {
	// text is the answer for a model.
	text() string
}

// define makes t a tool that does run. In is a struct of its arguments, which the schema says more about.
func define[In any, Out answer](s *Set, t Tool, more func(*schema), run func(context.Context, In) (Out, error)) Tool {
	input := schemaOf[In]()
	if more != nil {
		more(input)
	}
	t.InputSchema, t.OutputSchema = input.encode(), schemaOf[Out]().encode()
	t.call = func(ctx context.Context, arguments json.RawMessage) (Result, error) {
		var in In
		if err := decode(t.Name, input, arguments, &in); err != nil {
			return Result{}, err
		}
		if s.ws == nil {
			return Result{}, s.failed(t.Name, "", workspace.ErrClosed)
		}
		out, err := run(ctx, in)
		switch {
		case err == nil: // whatever has become of ctx: it was done
		case ctx.Err() != nil:
			return Result{}, context.Cause(ctx)
		default:
			return Result{}, s.failed(t.Name, pathOf(arguments), err)
		}
		return Result{Text: out.text(), Structured: encode(out)}, nil
	}
	return t
}

// pathOf is the argument path, "" if there is none.
func pathOf(arguments json.RawMessage) string {
	var in struct {
		Path string `json:"path"`
	}
	_ = json.Unmarshal(arguments, &in)
	return in.Path
}

// encode encodes the types of this package. They hold nothing that JSON cannot.
func encode(value any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // code is full of <, > and &
	if err := e.Encode(value); err != nil {
		panic(fmt.Sprintf("tools: encode %T: %v", value, err))
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
