package serve

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// certify writes a certificate with a serial number, and its key.
func certify(t *testing.T, serial int64, certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), NotAfter: time.Now().Add(time.Hour)}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	write := func(file, kind string, content []byte) {
		block := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content})
		require.NoError(t, os.WriteFile(file, block, 0o600))
	}
	write(certFile, "CERTIFICATE", cert)
	write(keyFile, "PRIVATE KEY", private)
}

// A certificate can be renewed while a server runs. While its files are damaged, the last one is
// used.
func TestCertificateIsReadAgain(t *testing.T) {
	certFile, keyFile := filepath.Join(t.TempDir(), "cert"), filepath.Join(t.TempDir(), "key")
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer plain.Close()
	_, err = WithCertificate(plain, certFile, keyFile, slog.New(slog.DiscardHandler))
	require.Error(t, err)

	certify(t, 1, certFile, keyFile)
	listener, err := WithCertificate(plain, certFile, keyFile, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	serial := func() int64 {
		go func() {
			if conn, err := listener.Accept(); err == nil {
				_ = conn.(*tls.Conn).Handshake()
				_ = conn.Close()
			}
		}()
		conn, err := tls.Dial("tcp", listener.Addr().String(), &tls.Config{InsecureSkipVerify: true})
		require.NoError(t, err)
		defer conn.Close()
		return conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
	}
	require.EqualValues(t, 1, serial())
	certify(t, 2, certFile, keyFile)
	require.EqualValues(t, 2, serial())
	require.NoError(t, os.Truncate(keyFile, 0))
	require.EqualValues(t, 2, serial())
}
