// Command echo writes back the first line that it reads: as little as a program on the
// other end of two pipes can do.
package main

import (
	"bufio"
	"os"
)

func main() {
	line, err := bufio.NewReader(os.Stdin).ReadBytes('\n')
	if err == nil {
		_, err = os.Stdout.Write(line)
	}
	if err != nil {
		os.Exit(1)
	}
}
