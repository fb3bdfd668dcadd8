package remote

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/acp-agent/acp-agent/internal/privatefile"
	"github.com/acp-agent/acp-agent/workspace"
)

// Token describes a token, without the token itself.
type Token struct {
	// Name names the user who has it.
	Name string
	// Within are the directories in which the roots of the user's sessions must be.
	Within workspace.Dirs
	// Agent names the agent that answers the user, "" for the server's own.
	Agent string
	// Created is when it was added.
	Created time.Time

	hash string // of the token, in hexadecimal digits
}

// tokenFile is the content of a token's file.
type tokenFile struct {
	Name    string    `json:"name"`
	Within  []string  `json:"within"`
	Agent   string    `json:"agent,omitzero"`
	Created time.Time `json:"created"`
	Hash    string    `json:"sha256"`
}

// same reports whether t and other stand for the same secret.
func (t Token) same(other Token) bool { return t.hash == other.hash }

// Tokens keeps tokens in a directory. Its methods are safe for concurrent use, by processes too.
type Tokens struct{ dir string }

// NewTokens returns the tokens in dir, which Add creates.
func NewTokens(dir string) *Tokens { return &Tokens{dir} }

// ErrTokenExists is returned by [Tokens.Add] if the name is taken.
var ErrTokenExists = errors.New("there is a token with this name")

// Add creates a token for t.Name and returns it. Only its hash is stored, so this is the only time
// that it can be seen.
func (s *Tokens) Add(t Token) (string, error) {
	path, err := s.path(t.Name)
	if err != nil {
		return "", err
	}
	secret := t.Name + "." + rand.Text()
	f := tokenFile{Name: t.Name, Agent: t.Agent, Created: t.Created, Hash: hashToken(secret)}
	for _, dir := range t.Within.All() {
		f.Within = append(f.Within, dir.String())
	}
	content, err := json.Marshal(f)
	if err != nil {
		return "", err
	}
	if _, err := os.Lstat(path); err == nil {
		return "", ErrTokenExists
	}
	return secret, privatefile.WriteFile(path, content)
}

// errInvalid is returned by [Tokens.find] if there is no such token, perhaps because it was revoked.
var errInvalid = errors.New("there is no such token")

// find returns what is known about a token.
func (s *Tokens) find(secret string) (Token, error) {
	dot := strings.LastIndexByte(secret, '.')
	if dot < 0 {
		return Token{}, errInvalid
	}
	t, err := s.get(secret[:dot])
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, errName):
		return Token{}, errInvalid
	case err != nil:
		return Token{}, err
	// Hashes have the same length, and are compared in constant time.
	case subtle.ConstantTimeCompare([]byte(t.hash), []byte(hashToken(secret))) != 1:
		return Token{}, errInvalid
	}
	return t, nil
}

// List returns all tokens, by name.
func (s *Tokens) List() ([]Token, error) {
	entries, err := os.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list []Token
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), tokenSuffix)
		if !ok {
			continue
		}
		t, err := s.get(name)
		if errors.Is(err, errName) {
			return nil, fmt.Errorf("%s is not the file of a token: %w", filepath.Join(s.dir, e.Name()), err)
		}
		if err != nil {
			return nil, err
		}
		list = append(list, t)
	}
	return list, nil
}

// Revoke removes a token. The error is fs.ErrNotExist if there is none with this name.
func (s *Tokens) Revoke(name string) error {
	path, err := s.path(name)
	if err != nil {
		return err
	}
	if _, err := os.Lstat(path); err != nil {
		return fs.ErrNotExist
	}
	return privatefile.Remove(path)
}

// get returns the token with this name. The error is fs.ErrNotExist if there is none.
func (s *Tokens) get(name string) (t Token, err error) {
	path, err := s.path(name)
	if err != nil {
		return t, err
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return t, err
	}
	var f tokenFile
	if err := json.Unmarshal(content, &f); err != nil {
		return t, fmt.Errorf("%s is damaged: %w", path, err)
	}
	if f.Name != name {
		return t, fmt.Errorf("%s is the token of %q", path, f.Name)
	}
	t = Token{Name: f.Name, Agent: f.Agent, Created: f.Created, hash: f.Hash}
	t.Within, err = workspace.ParseDirs(f.Within)
	return t, err
}

const (
	tokenSuffix  = ".json"
	maxNameBytes = 64
)

var errName = fmt.Errorf("a name has up to %d small letters, digits, '-', '_' and '.', begins "+
	"with a letter or a digit, and does not end with '.'", maxNameBytes)

// path returns the file of a token. Names must be distinct on any file system, and valid in a
// header.
func (s *Tokens) path(name string) (string, error) {
	valid := name != "" && len(name) <= maxNameBytes && strings.IndexByte(".-_", name[0]) < 0 &&
		!strings.HasSuffix(name, ".") // which Windows drops from the name of a folder
	for _, c := range []byte(name) {
		valid = valid && (c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || strings.IndexByte(".-_", c) >= 0)
	}
	if !valid {
		return "", fmt.Errorf("%w: not %q", errName, name)
	}
	return filepath.Join(s.dir, name+tokenSuffix), nil
}

func hashToken(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}
