// Command all runs all tests that this machine can run:
//
//	go run ./internal/test/all [-complete] [GO TEST FLAGS]
//
// It needs Go and git. With Node and npm it installs, and tests with, clients, agents and servers of
// others; with a C compiler it uses the race detector. At the end it prints the slowest tests, what
// was left out and why, and the tests that failed. With -complete it fails if npm or the race
// detector is missing. With -install it only installs packages of npm, all or those in the given
// directories.
//
//	main.go    what runs, in order
//	groups.go  packages and tests in groups, and what programs are needed for
//	npm.go     installs packages of npm
//	program.go builds the program that several packages test
//	report.go  reads the output of go test and prints the report
//
// All programs are compiled with one set of flags, those of a release, and with the race detector
// with another one. Only one go command runs at a time, because two would compile the same packages.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "all:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) > 0 && args[0] == "-install" {
		dirs := args[1:]
		if len(dirs) == 0 {
			dirs = packageDirs()
		}
		return install(ctx, dirs)
	}
	complete := len(args) > 0 && args[0] == "-complete"
	if complete {
		args = args[1:]
	}
	r := newReport(os.Stdout)
	s := &suite{report: r, args: args}
	if s.npm = has("node") && has("npm"); !s.npm && complete {
		return errors.New("node and npm are not installed")
	}
	if s.race = canRace(ctx); !s.race {
		r.leaveOut("gcc")
		if complete {
			return errors.New("the race detector needs a C compiler")
		}
	}
	if err := addShell(); err != nil {
		return err
	}
	begin := time.Now()
	err := s.run(ctx)
	r.print(time.Since(begin))
	return errors.Join(err, r.err())
}

// A suite is one run of all tests.
type suite struct {
	report *report
	args   []string // of go test
	npm    bool     // Node and npm are installed
	race   bool     // the race detector works
}

// run runs all tests once without the race detector, and then those of concurrent code with it. The
// packages that need no npm come first if npm has to install something meanwhile.
func (s *suite) run(ctx context.Context) error {
	if err := build(ctx, "bin/tested"); err != nil {
		return err
	}
	packages, err := list(ctx)
	if err != nil {
		return err
	}
	installed := make(chan error, 1)
	installed <- nil
	if dirs := outdated(packageDirs()); s.npm && len(dirs) > 0 {
		<-installed
		go func() { installed <- install(ctx, dirs) }()
		alone := func(p pkg) bool { return !p.needsNPM }
		if err := s.plain(ctx, packages.where(alone)); err != nil {
			return errors.Join(err, <-installed)
		}
		packages = packages.where(func(p pkg) bool { return p.needsNPM })
	}
	if err := <-installed; err != nil {
		return err
	}
	if err := s.plain(ctx, packages); err != nil || !s.race {
		return err
	}
	return s.concurrent(ctx)
}

// released is the environment in which programs are compiled as they are released: without cgo and
// with short paths.
func released() []string {
	return []string{"CGO_ENABLED=0", "GOFLAGS=" + strings.TrimSpace(os.Getenv("GOFLAGS")+" -trimpath")}
}

// plain runs the tests of packages as programs are released.
func (s *suite) plain(ctx context.Context, packages packages) error {
	return s.test(ctx, released(), packages.paths())
}

// concurrent runs the tests of concurrent code with the race detector, but not in SQLite: that is C
// translated to Go, and twenty times slower with it. The driver is not left out: it has instances of
// generic types of package sync, and the linker may use these for the whole program. Packages leave
// no goroutines, so the detector need not wait a second for them at the end of each.
func (s *suite) concurrent(ctx context.Context) error {
	s.report.section("with the race detector")
	race := func(run string, packages []string) error {
		args := append([]string{"-race", "-gcflags=modernc.org/sqlite/lib=-race=false",
			"-gcflags=modernc.org/libc/...=-race=false", "-run", run,
			"-skip", "^(" + strings.Join(alone, "|") + ")$"}, packages...)
		return s.test(ctx, []string{"CGO_ENABLED=1", "GORACE=atexit_sleep_ms=0"}, args)
	}
	if err := race(strings.Join(atOnce, "|"), largeRaced); err != nil {
		return err
	}
	return race("", smallRaced)
}

// test runs go test with more environment variables. Most tests wait for other programs most of the
// time, so more of them run at once than there are cores. Test binaries have no debug information:
// they link faster.
func (s *suite) test(ctx context.Context, env, args []string) error {
	atOnce := strconv.Itoa(2 * runtime.NumCPU())
	cmd := exec.CommandContext(ctx, "go", slices.Concat(
		[]string{"test", "-json", "-vet=off", "-ldflags=-w", "-timeout=20m", "-p=" + atOnce,
			"-parallel=" + atOnce}, s.args, args)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.Env, cmd.Stderr = append(os.Environ(), env...), os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	err = s.report.read(out)
	failed := cmd.Wait()
	if s.report.err() != nil { // the report has the reason
		failed = nil
	}
	return errors.Join(err, failed, context.Cause(ctx))
}

func has(program string) bool {
	_, err := exec.LookPath(program)
	return err == nil
}

// addShell adds the programs of the system to PATH if a shell is not in it, which git and many tests
// need.
func addShell() error {
	if has("sh") || runtime.GOOS == "windows" {
		return nil
	}
	return os.Setenv("PATH", os.Getenv("PATH")+":/bin:/usr/bin")
}

// canRace reports whether this machine can compile with the race detector, which needs cgo.
func canRace(ctx context.Context) bool {
	out, err := exec.CommandContext(ctx, "go", "env", "CC").Output()
	compiler := strings.Fields(string(out))
	return err == nil && len(compiler) > 0 && has(compiler[0])
}
