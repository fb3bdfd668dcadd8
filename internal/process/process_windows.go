package process

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

// group is the job object of a child and its descendants.
type group struct {
	mu  sync.Mutex
	pid uint32
	job windows.Handle // 0 once closed
}

// startGroup starts c and assigns it to a new job, which ends with our process.
func startGroup(c Command, s stdio) (*exec.Cmd, *group, error) {
	job, err := newJob()
	if err != nil {
		return nil, nil, &StartError{Command: c, Err: err}
	}
	cmd, _, err := start(context.Background(), c, s, &syscall.SysProcAttr{
		HideWindow:    true,
		CreationFlags: windows.CREATE_NEW_PROCESS_GROUP,
	})
	if err != nil {
		_ = windows.CloseHandle(job)
		return nil, nil, err
	}
	var assigned error
	withHandle := cmd.Process.WithHandle(func(process uintptr) {
		assigned = windows.AssignProcessToJobObject(job, windows.Handle(process))
	})
	if withHandle != nil {
		assigned = withHandle
	}
	if assigned != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = windows.CloseHandle(job)
		err = fmt.Errorf("cannot assign the process to a job: %w", assigned)
		return nil, nil, &StartError{Command: c, Err: err}
	}
	return cmd, &group{pid: uint32(cmd.Process.Pid), job: job}, nil
}

func newJob() (windows.Handle, error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return 0, fmt.Errorf("cannot create a job: %w", err)
	}
	var limits windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	limits.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits)))
	if err != nil {
		_ = windows.CloseHandle(job)
		return 0, fmt.Errorf("cannot set up a job: %w", err)
	}
	return job, nil
}

// terminate asks the group to end, like Ctrl-Break. It has no effect on processes without a
// console.
func (g *group) terminate() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.job != 0 {
		_ = windows.GenerateConsoleCtrlEvent(windows.CTRL_BREAK_EVENT, g.pid)
	}
}

func (g *group) kill() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.job != 0 {
		_ = windows.TerminateJobObject(g.job, 1)
	}
}

// end kills the rest of the job. Windows has no signal to ask it first, so the grace is unused.
func (g *group) end(time.Duration) {
	g.kill()
	g.mu.Lock()
	defer g.mu.Unlock()
	_ = windows.CloseHandle(g.job)
	g.job = 0
}

// awaitEnd waits for a child.
func awaitEnd(cmd *exec.Cmd) { _ = cmd.Wait() }

// shellStatus returns the status that a shell reports of a process that has ended.
func shellStatus(state *os.ProcessState) int { return state.ExitCode() }
