package serve

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"sync/atomic"
)

// WithCertificate returns a listener that expects TLS on the connections of listener. The
// certificate and its key are in two files, which are read again for each connection.
func WithCertificate(
	listener net.Listener, certFile, keyFile string, log *slog.Logger,
) (net.Listener, error) {
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil && !errors.As(err, new(*fs.PathError)) {
		err = fmt.Errorf("%w; give PEM files of a certificate and of its key", err)
	}
	if err != nil {
		return nil, err
	}
	var last atomic.Pointer[tls.Certificate]
	last.Store(&pair)
	return tls.NewListener(listener, &tls.Config{
		NextProtos: []string{"http/1.1"}, // WebSocket
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			if pair, err := tls.LoadX509KeyPair(certFile, keyFile); err == nil {
				last.Store(&pair)
			} else { // perhaps one of the files is being replaced
				log.Error("cannot read the certificate again; the old one is still used",
					"error", err)
			}
			return last.Load(), nil
		},
	}), nil
}
