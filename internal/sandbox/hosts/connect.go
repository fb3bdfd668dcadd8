package hosts

import (
	"bufio"
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"
)

// connect connects to an allowed target: to one of its addresses, all of which are checked. If one
// is not allowed, the error is a [Refusal].
func (p *Proxy) connect(ctx context.Context, t Target) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	addrs, err := p.resolve(ctx, t)
	if err != nil {
		return nil, err
	}
	for _, addr := range addrs {
		if !p.options.Hosts.allowAddr(t, addr) {
			near := Target{addr: addr.Unmap().WithZone(""), port: t.port}
			return nil, Refusal{t.String(), near.Entry(), near.addr.String()}
		}
	}
	var failed []error
	for i, addr := range addrs {
		c, err := p.dialOne(ctx, netip.AddrPortFrom(addr.Unmap(), t.port), len(addrs)-i)
		if err == nil {
			return c, nil
		}
		failed = append(failed, err)
	}
	return nil, fmt.Errorf("cannot connect to %v: %w", t, errors.Join(failed...))
}

// dialOne connects to the first of several addresses, and leaves time for the others. ctx has a
// deadline.
func (p *Proxy) dialOne(ctx context.Context, to netip.AddrPort, addresses int) (net.Conn, error) {
	deadline, _ := ctx.Deadline()
	ctx, cancel := context.WithTimeout(ctx, time.Until(deadline)/time.Duration(addresses))
	defer cancel()
	return p.options.dial(ctx, to.String())
}

// resolve returns the addresses of a target, at least one.
func (p *Proxy) resolve(ctx context.Context, t Target) ([]netip.Addr, error) {
	switch {
	case t.addr.IsValid():
		return []netip.Addr{t.addr}, nil
	case t.name == localhost:
		return localAddrs(), nil
	}
	name := t.name
	if strings.ContainsRune(name, '.') {
		name += "." // no domain of this machine's network is appended
	}
	addrs, err := p.options.lookup(ctx, name)
	if err == nil && len(addrs) == 0 {
		err = errors.New("it has no address")
	}
	if err != nil {
		return nil, fmt.Errorf("cannot resolve %s: %w", t.name, err)
	}
	return addrs, nil
}

// openThrough connects to t through another proxy.
func (p *Proxy) openThrough(ctx context.Context, via *url.URL, t Target) (net.Conn, error) {
	if via.Scheme != "http" {
		return nil, fmt.Errorf("the proxy %s in the environment of acp-agent is not an http:// one",
			via.Redacted())
	}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	address := via.Host
	if via.Port() == "" {
		address += ":80"
	}
	c, err := p.options.dial(ctx, address)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	err = askUpstream(c, via.User, t)
	if !stop() {
		err = cmp.Or(err, context.Cause(ctx))
	}
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// askUpstream has the proxy at the other end of c connect to t.
func askUpstream(c net.Conn, user *url.Userinfo, t Target) error {
	request := "CONNECT " + t.String() + " HTTP/1.1\r\nHost: " + t.String() + "\r\n"
	if user != nil {
		password, _ := user.Password()
		request += "Proxy-Authorization: Basic " + base64.StdEncoding.EncodeToString(
			[]byte(user.Username()+":"+password)) + "\r\n"
	}
	if _, err := io.WriteString(c, request+"\r\n"); err != nil {
		return err
	}
	// The other side says nothing after the answer before we do, except servers that greet first.
	in := bufio.NewReaderSize(oneByte{c}, 1)
	res, err := http.ReadResponse(in, &http.Request{Method: http.MethodConnect})
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("the proxy in the environment of acp-agent answers %q", res.Status)
	}
	return err
}

// oneByte reads single bytes, so that a buffered reader takes no more than it returns.
type oneByte struct{ io.Reader }

func (r oneByte) Read(p []byte) (int, error) { return r.Reader.Read(p[:min(1, len(p))]) }

// tunnel carries bytes between a client, whose bytes come from in, and a remote host until both
// have finished, or have been silent for long.
func (p *Proxy) tunnel(client net.Conn, in io.Reader, remote net.Conn) {
	defer p.hold(client)()
	defer p.hold(remote)()
	var both sync.WaitGroup
	both.Go(func() { p.carry(remote, in, client, remote) })
	p.carry(client, remote, client, remote)
	both.Wait()
}

// carry copies from in to out until in ends. It extends the time for both connections.
func (p *Proxy) carry(out net.Conn, in io.Reader, client, remote net.Conn) {
	buffer := make([]byte, 16<<10)
	for {
		deadline := time.Now().Add(idleTimeout)
		_, _ = client.SetDeadline(deadline), remote.SetDeadline(deadline)
		n, err := in.Read(buffer)
		if n > 0 {
			if _, failed := out.Write(buffer[:n]); failed != nil {
				_, _ = client.Close(), remote.Close()
				return
			}
		}
		if err == nil {
			continue
		}
		if half, ok := out.(interface{ CloseWrite() error }); ok && errors.Is(err, io.EOF) {
			_ = half.CloseWrite()
			return
		}
		_, _ = client.Close(), remote.Close()
		return
	}
}
