// Package cable has a connection between clients and a server that a test can cut.
package cable

import (
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Cable passes bytes between clients and a server. When the test ends, nothing of it is left.
type Cable struct {
	// URL is where clients find the server.
	URL string

	mu     sync.Mutex
	conns  []*net.TCPConn
	pulled bool
}

// Lay returns a cable to the server at url, such as ws://127.0.0.1:80.
func Lay(t testing.TB, url string) *Cable {
	t.Helper()
	scheme, host, _ := strings.Cut(url, "://")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	c := &Cable{URL: scheme + "://" + listener.Addr().String()}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", host)
			if err != nil {
				_ = near.Close()
				continue
			}
			c.hold(near.(*net.TCPConn), far.(*net.TCPConn))
			for from, to := range map[net.Conn]net.Conn{near: far, far: near} {
				running.Go(func() {
					_, _ = io.Copy(to, from)
					_, _ = from.Close(), to.Close()
				})
			}
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		c.Pull()
		running.Wait()
	})
	return c
}

// hold makes Cut end these connections.
func (c *Cable) hold(conns ...*net.TCPConn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conns = append(c.conns, conns...)
	if c.pulled {
		c.cutLocked()
	}
}

// Cut ends all connections. New ones get through.
func (c *Cable) Cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cutLocked()
}

// Pull ends all connections, and nothing gets through any more.
func (c *Cable) Pull() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pulled = true
	c.cutLocked()
}

func (c *Cable) cutLocked() {
	for _, conn := range c.conns {
		_ = conn.SetLinger(0) // what is on its way is lost
		_ = conn.Close()
	}
	c.conns = nil
}
