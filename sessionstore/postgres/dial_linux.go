package postgres

import (
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// limitLoss ends a connection over TCP when what was sent is not acknowledged for so long that the
// database must be unreachable. The system itself gives up after a quarter of an hour. It is a
// [net.Dialer.Control].
func limitLoss(network, _ string, c syscall.RawConn) error {
	if !strings.HasPrefix(network, "tcp") {
		return nil
	}
	var failed error
	err := c.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT,
			int(longestLoss.Milliseconds()))
	})
	if err != nil {
		return err
	}
	return failed
}
