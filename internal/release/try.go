package main

import (
	"archive/zip"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// try unpacks the archive in dir for this platform, starts the program with a new home directory,
// sends initialize, and prints the version that it answers with.
func try(ctx context.Context, dir string) error {
	t := hostTarget()
	paths, err := filepath.Glob(filepath.Join(dir, fmt.Sprintf("acp-agent_*_%s_%s.*", t.os, t.arch)))
	if err != nil || len(paths) == 0 {
		return fmt.Errorf("%s has no archive for %s on %s", dir, t.os, t.arch)
	}
	work, err := os.MkdirTemp("", "try")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	archive := paths[0]
	for _, path := range paths { // beside packages
		if strings.HasSuffix(path, ".tar.gz") || strings.HasSuffix(path, ".zip") {
			archive = path
		}
	}
	program := filepath.Join(work, "program")
	if err := unpack(ctx, archive, program); err != nil {
		return err
	}
	answered, err := initialize(ctx, filepath.Join(program, t.executable()), work)
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(archive), err)
	}
	if !strings.HasPrefix(filepath.Base(archive), "acp-agent_"+answered+"_") {
		return fmt.Errorf("%s has version %s", filepath.Base(archive), answered)
	}
	fmt.Printf("%s answers initialize as version %s\n", filepath.Base(archive), answered)
	return nil
}

// unpack unpacks a zip file, or a compressed tar file with the program tar.
func unpack(ctx context.Context, path, dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	if filepath.Ext(path) != ".zip" {
		out, err := exec.CommandContext(ctx, "tar", "-xzf", path, "-C", dir).CombinedOutput()
		if err != nil {
			err = fmt.Errorf("tar: %w\n%s", err, out)
		}
		return err
	}
	files, err := zip.OpenReader(path)
	if err != nil {
		return err
	}
	defer files.Close()
	return os.CopyFS(dir, files)
}

// request is the first line that an editor sends.
const request = `{"jsonrpc":"2.0","id":1,"method":"initialize",` +
	`"params":{"protocolVersion":1,"clientCapabilities":{}}}` + "\n"

// initialize starts a program and returns the version in its answer. The program ends at the end of
// its input.
func initialize(ctx context.Context, path, home string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, path)
	cmd.Dir, cmd.Stdin = home, strings.NewReader(request)
	cmd.Env = append(os.Environ(), "HOME="+home, "USERPROFILE="+home, "LOCALAPPDATA="+home,
		"APPDATA="+home, "XDG_STATE_HOME="+home, "XDG_CONFIG_HOME="+home)
	var problems strings.Builder
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%w\n%s", err, problems.String())
	}
	var answer struct {
		Result struct {
			AgentInfo struct {
				Name, Version string
			} `json:"agentInfo"`
		} `json:"result"`
	}
	if err := json.Unmarshal(out, &answer); err != nil {
		return "", fmt.Errorf("the answer is no JSON: %w\n%s", err, out)
	}
	return answer.Result.AgentInfo.Version, nil
}
