package serve

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/acp-agent/acp-agent/acp"
)

// Kind says what a token is for.
type Kind string

const (
	// Bearer tokens let programs connect.
	Bearer Kind = ""
	// Code is exchanged for the token of a device, once.
	Code Kind = "code"
	// Device tokens are the cookies of browsers, each with the proof of its page.
	Device Kind = "device"
)

// ParseRole returns the role with this name.
func ParseRole(name string) (acp.Role, error) {
	role := acp.Role(name)
	if slices.Contains([]acp.Role{acp.RoleWatch, acp.RoleAnswer, acp.RoleFull}, role) {
		return role, nil
	}
	return "", fmt.Errorf("%q is not a role: use watch, answer or full", name)
}

const (
	// CodeLife is how long a code can be used.
	CodeLife = 5 * time.Minute
	// deviceLife is how long a device stays paired.
	deviceLife = 30 * 24 * time.Hour
)

// AddCode creates a code with which one device of the account with this name can be paired. The
// device gets the role and the label. The error is fs.ErrNotExist if the account does not exist.
func (s *Accounts) AddCode(name string, role acp.Role, label string) (string, error) {
	now := time.Now().UTC()
	own, err := s.Tokens(name)
	if err != nil {
		return "", err
	}
	for _, t := range own {
		if t.Kind == Code && !t.validAt(now) {
			err = errors.Join(err, s.RevokeToken(name, t.ID))
		}
	}
	if err != nil {
		return "", err
	}
	return s.AddToken(name, Token{Label: label, Created: now, Expires: now.Add(CodeLife), Kind: Code,
		Role: role})
}

// pair exchanges a code for a cookie, which is the token of a device together with the proof. The
// error is errInvalid if the code is unknown, too old, or was used before.
func (s *Accounts) pair(code, proof string) (cookie string, v visitor, err error) {
	if v, err = s.findToken(code, Code); err != nil {
		return "", v, err
	}
	// Only one of those who use the code at once removes it.
	err = os.Remove(s.tokenPath(v.Name, v.ID))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", v, errInvalid
	case err != nil:
		return "", v, err
	}
	now := time.Now().UTC()
	v.Token = Token{Label: v.Label, Created: now, Expires: now.Add(deviceLife), Kind: Device,
		Role: v.Role}
	cookie = newSecret(v.Name)
	v.ID, err = s.addToken(v.Name, cookie+proof, v.Token)
	return cookie, v, err
}

// PairingLink returns the address that pairs a device by opening it, at a server's address such as
// https://agent.example.org. The code is in the fragment, which browsers send to nobody.
func PairingLink(server, code string) string {
	return strings.TrimSuffix(server, "/") + "/#pair=" + code
}
