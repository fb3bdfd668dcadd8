package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
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
	if err := unpack(archive, program); err != nil {
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

// unpack unpacks a compressed tar file or a zip file.
func unpack(path, dir string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if filepath.Ext(path) == ".zip" {
		files, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
		if err != nil {
			return err
		}
		return os.CopyFS(dir, files)
	}
	compressed, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return err
	}
	archive := tar.NewReader(compressed)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil && !filepath.IsLocal(header.Name) {
			err = fmt.Errorf("%s leads out of the archive", header.Name)
		}
		if err != nil {
			return err
		}
		if err := writeEntry(filepath.Join(dir, header.Name), archive, header); err != nil {
			return err
		}
	}
}

func writeEntry(name string, content io.Reader, header *tar.Header) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	b, err := io.ReadAll(content)
	if err != nil {
		return err
	}
	return os.WriteFile(name, b, fs.FileMode(header.Mode).Perm())
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
