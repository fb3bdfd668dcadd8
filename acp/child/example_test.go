//go:build unix

package child_test

import (
	"context"
	"fmt"
	"io"

	"github.com/acp-agent/acp-agent/acp/child"
)

func Example() {
	ctx := context.Background()
	p, err := child.Start(ctx, child.Command{Path: "cat"}, child.Options{})
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
