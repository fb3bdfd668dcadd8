package proctest

import (
	"bufio"
	"errors"
	"os/exec"
	"strings"
)

// KillAfter runs a command, kills it after some lines of its output, and returns the complete lines
// that it wrote. What it writes to its standard error is an error.
func KillAfter(cmd *exec.Cmd, lines int) (output []byte, err error) {
	var complaints strings.Builder
	cmd.Stderr = &complaints
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	for written := bufio.NewReader(out); ; lines-- {
		line, err := written.ReadBytes('\n')
		if err != nil {
			break
		}
		output = append(output, line...)
		if lines == 0 {
			_ = cmd.Process.Kill()
		}
	}
	_ = cmd.Wait()
	if complaints.Len() > 0 {
		return nil, errors.New(complaints.String())
	}
	return output, nil
}
