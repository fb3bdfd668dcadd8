// Command release builds everything that is published for a version of acp-agent: an archive for
// each platform, npm packages, the entry of the ACP registry, a bill of materials and checksums.
// The version is the commit's tag. The command publishes nothing: release.yml signs and publishes
// the files in DIR, but not those in its folders.
//
//	main.go      what is built, in order
//	build.go     the programs, and the documents in every archive
//	archive.go   archives, the same bytes in every run
//	licences.go  the licences of linked modules, and the bill of materials
//	npm.go       npm packages: acp-agent, and one for each platform; the ACP registry's entry
//
// Two runs from the same commit and Go version make the same bytes.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"testing/fstest"

	"github.com/acp-agent/acp-agent/internal/version"
)

func main() {
	out := flag.String("out", "dist", "write to the directory `DIR`, which is replaced")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	r := &release{checkout: ".", out: *out}
	err := r.build(ctx, allTargets)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// A program is acp-agent built for a platform.
type program struct {
	target
	path string // of the executable
}

// A release has the state of one that is being built.
type release struct {
	checkout string // the root of the source tree
	out      string
	version  version.Version
	programs []program
	// files go into each archive beside the program.
	files fstest.MapFS
}

// build builds everything for the given targets into out, which it replaces.
func (r *release) build(ctx context.Context, targets []target) error {
	if err := os.RemoveAll(r.out); err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "release")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	for _, step := range []func() error{
		func() error { return r.compile(ctx, work, targets) },
		func() error { return r.collect(ctx) },
		r.writeArchives,
		r.writeNPM,
		r.writeRegistryEntry,
		r.writeBillOfMaterials,
		r.writeChecksums,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	fmt.Printf("acp-agent %s for %d platforms is in %s\n", r.version.Number, len(targets), r.out)
	return nil
}

// write writes a file below the output directory.
func (r *release) write(name string, content []byte) error {
	path := filepath.Join(r.out, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o644)
}

// object is a JSON object.
type object = map[string]any

// encoded returns a value as JSON in lines.
func encoded(value any) []byte {
	text, _ := json.MarshalIndent(value, "", "  ") // it has only texts, lists and objects
	return append(text, '\n')
}

// writeChecksums writes the SHA-256 sum of each published file, in the format of sha256sum.
func (r *release) writeChecksums() error {
	entries, err := os.ReadDir(r.out)
	if err != nil {
		return err
	}
	var sums strings.Builder
	for _, entry := range entries {
		if entry.IsDir() {
			continue
		}
		content, err := os.ReadFile(filepath.Join(r.out, entry.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(content), entry.Name())
	}
	return r.write("checksums.txt", []byte(sums.String()))
}
