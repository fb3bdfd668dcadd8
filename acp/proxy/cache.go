package proxy

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/acp/proxy/profile"
	"github.com/acp-agent/acp-agent/internal/privatefile"
	"github.com/acp-agent/acp-agent/internal/strictjson"
	"github.com/acp-agent/acp-agent/workspace"
)

// maxCached bounds a cached answer, in bytes.
const maxCached = 1 << 20

// cacheEntry is what a program answered to initialize.
type cacheEntry struct {
	Program    program     `json:"program"`
	Initialize backend.Raw `json:"initialize"`
}

// program is a program's file: an update changes it.
type program struct {
	Path     string    `json:"path"`
	Size     int64     `json:"size"`
	Modified time.Time `json:"modified"`
}

// recall takes what is known of the agent from an earlier run, if that is worth anything: an agent with one
// process for all sessions is started anyway. It reports whether it did.
func (p *proxy) recall() bool {
	file, is, ok := p.cacheFile()
	if !ok {
		return false
	}
	text, err := os.ReadFile(file)
	if err != nil || len(text) > maxCached {
		return false
	}
	var entry cacheEntry
	if json.Unmarshal(text, &entry) != nil || entry.Program.Path != is.Path || entry.Program.Size != is.Size ||
		!entry.Program.Modified.Equal(is.Modified) {
		return false
	}
	info, err := client.ParseAgent(entry.Initialize)
	if w, _ := way(p.profile, info, workspace.Roots{}); err != nil || info.Version != client.ProtocolVersion || w != profile.ByFlags {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.info, p.cached = info, true
	return true
}

// remember keeps what the agent said of itself for later runs. Without it they are slower, no more.
func (p *proxy) remember(info client.Agent) {
	file, is, ok := p.cacheFile()
	if !ok || len(info.Raw) > maxCached/2 {
		return
	}
	text, err := json.Marshal(cacheEntry{is, info.Raw})
	if err == nil {
		err = privatefile.WriteFile(file, text)
	}
	if err != nil {
		p.log.Warn("what the agent can do is not kept for the next start", "error", err)
	}
}

// cacheFile is where the agent's answer is kept, by its command and what it was told of the client. It is not
// kept for an agent whose profile knows no flags.
func (p *proxy) cacheFile() (file string, is program, ok bool) {
	if w, _ := way(p.profile, client.Agent{}, workspace.Roots{}); p.options.CacheDir == "" || w != profile.ByFlags {
		return "", program{}, false
	}
	path, err := exec.LookPath(p.command.Path)
	if err != nil {
		return "", program{}, false
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return "", program{}, false
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", program{}, false
	}
	params, _ := p.forNewChild()
	capabilities, _, err := strictjson.Take(params, "clientCapabilities")
	if err != nil {
		return "", program{}, false
	}
	key, err := json.Marshal([]any{p.command.Path, p.command.Args, p.command.Env, string(capabilities)})
	if err != nil {
		return "", program{}, false
	}
	sum := sha256.Sum256(key)
	name := profile.Program(p.command.Path) + "-" + hex.EncodeToString(sum[:8]) + ".json"
	return filepath.Join(p.options.CacheDir, name), program{path, info.Size(), info.ModTime().UTC()}, true
}
