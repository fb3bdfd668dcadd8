package mcpserver

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
)

// seal signs what a question was asked for, so that an answer to another one is told from the right one. Nothing is
// kept between a question and its answer.
type seal struct{ key [32]byte }

func newSeal() *seal {
	s := &seal{}
	_, _ = rand.Read(s.key[:]) // it never fails
	return s
}

// of is the seal of the parts of a request, in this order.
func (s *seal) of(parts ...[]byte) string {
	mac := hmac.New(sha256.New, s.key[:])
	for _, part := range parts {
		_ = binary.Write(mac, binary.BigEndian, uint64(len(part)))
		_, _ = mac.Write(part)
	}
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// matches reports whether a seal that came back is that of the parts.
func (s *seal) matches(given string, parts ...[]byte) bool {
	return hmac.Equal([]byte(given), []byte(s.of(parts...)))
}
