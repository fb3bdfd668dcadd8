package serve

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
	"slices"
	"strings"
	"time"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/internal/files/privatefile"
	"github.com/acp-agent/acp-agent/internal/permission"
	"github.com/acp-agent/acp-agent/workspace"
)

// Account describes a user, and what the user may use. As JSON it is the content of the account's
// file, NAME.json.
type Account struct {
	// Name names the user.
	Name string `json:"name"`
	// Within are the directories in which the user's sessions must have their roots.
	Within workspace.Dirs `json:"within"`
	// Agent names the agent that answers the user, "" for the server's own.
	Agent string `json:"agent,omitzero"`
	// Limits replace those of the server where they are not 0.
	Limits Limits `json:"limits,omitzero"`
	// Budget is the amount that the user's sessions may cost before the user is asked.
	Budget acp.Budget `json:"budget,omitzero"`
	// Ask and Deny are rules in addition to those of the server.
	Ask  []string `json:"ask,omitzero"`
	Deny []string `json:"deny,omitzero"`
}

// Limits are what a user may use, and store.
type Limits struct {
	acp.Limits
	StoredBytes int `json:"storedBytes,omitzero"`
}

// Narrow returns the rules for a session of the user: those of the server, which may be nil, with
// the account's, which can only ask and deny.
func (a Account) Narrow(server *acp.Permissions) *acp.Permissions {
	if len(a.Ask)+len(a.Deny) == 0 {
		return server
	}
	own := permission.Permissions{Ask: a.Ask, Deny: a.Deny}
	if server != nil {
		own = own.With(permission.Permissions(*server))
	}
	return (*acp.Permissions)(&own)
}

// same reports whether a and other give the same rights.
func (a Account) same(other Account) bool {
	return a.Agent == other.Agent && a.Budget == other.Budget && a.Limits == other.Limits &&
		slices.Equal(a.Ask, other.Ask) && slices.Equal(a.Deny, other.Deny) &&
		a.Within.Equal(other.Within)
}

// Token describes a token, without the token itself. As JSON it is the content of NAME/ID.json.
type Token struct {
	// ID tells the tokens of a user apart.
	ID string `json:"-"`
	// Label says what the token is for. May be empty.
	Label string `json:"label,omitzero"`
	// Created is when it was added. Expires is when it ends; if it is zero, the token does not end.
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires,omitzero"`
	// Kind says what the token is for, and Role what a device may do.
	Kind Kind     `json:"kind,omitzero"`
	Role acp.Role `json:"role,omitzero"`
	// Hash is that of the token, in hexadecimal digits. [Accounts.AddToken] sets it.
	Hash string `json:"sha256"`
}

// validAt reports whether a token can be used at a time.
func (t Token) validAt(now time.Time) bool { return t.Expires.IsZero() || now.Before(t.Expires) }

// Accounts are accounts in a directory, with their tokens, for concurrent use also by processes.
type Accounts struct{ dir string }

// NewAccounts returns the accounts in dir, which Create creates.
func NewAccounts(dir string) *Accounts { return &Accounts{dir} }

// Create creates an account without tokens. The error is fs.ErrExist if the name has an account.
func (s *Accounts) Create(a Account) error {
	path, content, err := s.encode(a)
	if err != nil {
		return err
	}
	return privatefile.CreateFile(path, content)
}

// Change changes an account. The error is fs.ErrNotExist if the name has no account.
func (s *Accounts) Change(a Account) error {
	path, content, err := s.encode(a)
	if err != nil {
		return err
	}
	if _, err := os.Lstat(path); err != nil {
		return fs.ErrNotExist
	}
	return privatefile.WriteFile(path, content)
}

// encode returns the file of an account, and its content.
func (s *Accounts) encode(a Account) (path string, content []byte, err error) {
	if path, err = s.path(a.Name); err != nil {
		return "", nil, err
	}
	content, err = json.Marshal(a)
	return path, content, err
}

// AddToken creates a token for the account with this name, and returns the token. Only its hash is
// stored, so this is the only time that it can be seen. The error is fs.ErrNotExist if there is no
// such account.
func (s *Accounts) AddToken(name string, t Token) (string, error) {
	secret := newSecret(name)
	_, err := s.addToken(name, secret, t)
	return secret, err
}

// newSecret returns what a token of the account with this name may be.
func newSecret(name string) string { return name + "." + rand.Text() }

// addToken stores a token, and returns its id.
func (s *Accounts) addToken(name, secret string, t Token) (id string, err error) {
	if _, err := s.Account(name); err != nil {
		return "", err
	}
	t.Hash = hashToken(secret)
	content, err := json.Marshal(t)
	if err != nil {
		return "", err
	}
	id = tokenID(t.Hash)
	return id, privatefile.CreateFile(s.tokenPath(name, id), content)
}

// errInvalid is returned by [Accounts.findToken] for an unknown token, which may have been revoked.
var errInvalid = errors.New("there is no such token")

// findToken returns the user who has a token of a kind.
func (s *Accounts) findToken(secret string, kind Kind) (v visitor, err error) {
	dot := strings.LastIndexByte(secret, '.')
	if dot < 0 {
		return v, errInvalid
	}
	hash := hashToken(secret)
	if v.Account, err = s.Account(secret[:dot]); err == nil {
		v.Token, err = s.token(v.Name, tokenID(hash))
	}
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, errName):
		err = errInvalid
	case err != nil:
	// Hashes have the same length, and are compared in constant time.
	case subtle.ConstantTimeCompare([]byte(v.Hash), []byte(hash)) != 1, !v.validAt(time.Now()),
		v.Kind != kind:
		err = errInvalid
	}
	if err != nil {
		return visitor{}, err
	}
	return v, nil
}

// List returns all accounts, by name. What is damaged is left out, and the error names it.
func (s *Accounts) List() ([]Account, error) {
	return readAll(s.dir, func(name string) (Account, error) {
		a, err := s.Account(name)
		if errors.Is(err, errName) {
			err = fmt.Errorf("%s is not the file of a user: %w",
				filepath.Join(s.dir, name+suffix), err)
		}
		return a, err
	})
}

// Tokens returns the tokens of the account with this name, in the order in which they were created.
// What is damaged is left out, and the error names it.
func (s *Accounts) Tokens(name string) (list []Token, err error) {
	if _, err := s.path(name); err != nil {
		return nil, err
	}
	list, err = readAll(s.tokenDir(name), func(id string) (Token, error) {
		return s.token(name, id)
	})
	slices.SortStableFunc(list, func(a, b Token) int { return a.Created.Compare(b.Created) })
	return list, err
}

// readAll calls read with the names of the files in dir, without the suffix, and returns what it
// returns. What fails is left out, and is in the error.
func readAll[T any](dir string, read func(name string) (T, error)) (list []T, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), suffix)
		if !ok {
			continue
		}
		if one, failed := read(name); failed == nil {
			list = append(list, one)
		} else {
			err = errors.Join(err, failed)
		}
	}
	return list, err
}

// Revoke removes an account with its tokens. The error is fs.ErrNotExist if the name has no account.
func (s *Accounts) Revoke(name string) error {
	path, err := s.path(name)
	if err != nil {
		return err
	}
	if _, err := os.Lstat(path); err != nil {
		return fs.ErrNotExist
	}
	// The account first: without it no token is valid.
	return errors.Join(privatefile.Remove(path), os.RemoveAll(s.tokenDir(name)))
}

// RevokeToken removes one token. The error is fs.ErrNotExist if the account does not have it.
func (s *Accounts) RevokeToken(name, id string) error {
	if _, err := s.path(name); err != nil {
		return err
	}
	if _, err := hex.DecodeString(id); err != nil || len(id) != idDigits {
		return fs.ErrNotExist
	}
	path := s.tokenPath(name, id)
	if _, err := os.Lstat(path); err != nil {
		return fs.ErrNotExist
	}
	return privatefile.Remove(path)
}

// Account returns the account with this name, or fs.ErrNotExist.
func (s *Accounts) Account(name string) (a Account, err error) {
	path, err := s.path(name)
	if err != nil {
		return a, err
	}
	if err = read(path, &a); err == nil && a.Name != name {
		err = fmt.Errorf("%s is the file of %q", path, a.Name)
	}
	return a, err
}

func (s *Accounts) token(name, id string) (Token, error) {
	t := Token{ID: id}
	err := read(s.tokenPath(name, id), &t)
	return t, err
}

func read(path string, to any) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(content, to); err != nil {
		return fmt.Errorf("%s is damaged: %w", path, err)
	}
	return nil
}

const (
	suffix       = ".json"
	maxNameBytes = 64
	idDigits     = 8
)

// tokenID returns the id of the token with this hash.
func tokenID(hash string) string { return hash[:idDigits] }

var errName = fmt.Errorf("a name has up to %d small letters, digits, and -_.@+, begins "+
	"with a letter or a digit, and does not end with '.'", maxNameBytes)

// path returns the file of an account. Names must be distinct on any file system, and valid in a
// header.
func (s *Accounts) path(name string) (string, error) {
	valid := name != "" && len(name) <= maxNameBytes && strings.IndexByte(".-_@+", name[0]) < 0 &&
		!strings.HasSuffix(name, ".") && // which Windows drops from the name of a folder
		!strings.HasSuffix(name, suffix) // which is the file of another account
	for _, c := range []byte(name) {
		valid = valid && (c >= 'a' && c <= 'z' || c >= '0' && c <= '9' ||
			strings.IndexByte(".-_@+", c) >= 0)
	}
	if !valid {
		return "", fmt.Errorf("%w: not %q", errName, name)
	}
	return filepath.Join(s.dir, name+suffix), nil
}

// tokenDir returns the directory of an account's tokens.
func (s *Accounts) tokenDir(name string) string { return filepath.Join(s.dir, name) }

func (s *Accounts) tokenPath(name, id string) string {
	return filepath.Join(s.tokenDir(name), id+suffix)
}

func hashToken(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}
