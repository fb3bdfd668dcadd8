//go:build unix

package process_test

import (
	"context"
	"fmt"
	"io"

	"github.com/acp-agent/acp-agent/internal/process"
)

func Example() {
	ctx := context.Background()
	p, err := process.Start(ctx, process.Command{Path: "cat"}, process.Options{})
	if err != nil {
		fmt.Println(err) // says what to do about it
		return
	}
	defer p.Stdout().Close()
	fmt.Fprint(p.Stdin(), "hello")
	if err := p.Stop(ctx); err != nil {
		fmt.Println(err)
	}
	said, _ := io.ReadAll(p.Stdout())
	fmt.Printf("%s, %v\n", said, p.Wait(ctx))
	// Output: hello, <nil>
}
