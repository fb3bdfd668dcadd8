// Package cable has a connection between clients and a server that a test can cut or slow down.
package cable

import (
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Cable passes bytes between clients and a server. When the test ends, nothing of it is left.
type Cable struct {
	// URL is where clients find the server.
	URL string
	// Slow makes it pass no more than 16 KiB in a millisecond.
	Slow atomic.Bool

	clogged atomic.Int32 // how often

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
				clogged := c.clogged.Load()
				running.Go(func() { c.pass(to, from, clogged) })
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

// pass passes bytes until one of the connections ends. Once the cable was clogged more often, it
// loses them.
func (c *Cable) pass(to io.WriteCloser, from io.ReadCloser, clogged int32) {
	piece := make([]byte, 16<<10)
	for {
		n, err := from.Read(piece)
		if c.Slow.Load() {
			time.Sleep(time.Millisecond)
		}
		if c.clogged.Load() > clogged {
			n = 0
		}
		if _, writeErr := to.Write(piece[:n]); err != nil || writeErr != nil {
			_, _ = from.Close(), to.Close()
			return
		}
	}
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

// Clog makes connections pass nothing more, without an end. New ones get through.
func (c *Cable) Clog() { c.clogged.Add(1) }

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
