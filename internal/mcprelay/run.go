package mcprelay

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/acp-agent/acp-agent/internal/process"
)

// Options configure a relay. Address and Secret are needed.
type Options struct {
	// Address is the publisher's, Secret what it must be told.
	Address, Secret string
	// ConnectTimeout is how long it may take until the publisher has told its roots. Default 5 s.
	ConnectTimeout time.Duration
	// MaxMessage is the most bytes of a line that are looked at; a longer one passes as it is. Default 64 MiB.
	MaxMessage int
	// MaxHeld is the most bytes of calls that are held because they might have to be repeated. Default four times
	// MaxMessage.
	MaxHeld int
	// MaxOwn is the most bytes of the relay's own messages that wait for a peer to read. Default twice MaxMessage.
	MaxOwn int
	// MaxRounds is how often one call is sent because the server asked for roots. Default 10.
	MaxRounds int
	// MaxQuestions is how many questions one result may ask. Default 100.
	MaxQuestions int
	// EndGrace is how long calls that are held are waited for when the client's input has ended. Default 1 s.
	EndGrace time.Duration
	// Logger takes what goes wrong. Default: discarded.
	Logger *slog.Logger
	// Child are the options of the server's process. Its grace is 1 s by default.
	Child process.Options
}

func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.ConnectTimeout = cmp.Or(o.ConnectTimeout, 5*time.Second)
	o.MaxMessage = cmp.Or(o.MaxMessage, 64<<20)
	o.MaxHeld = cmp.Or(o.MaxHeld, 4*o.MaxMessage)
	o.MaxOwn = cmp.Or(o.MaxOwn, 2*o.MaxMessage)
	o.MaxRounds = cmp.Or(o.MaxRounds, 10)
	o.MaxQuestions = cmp.Or(o.MaxQuestions, 100)
	o.EndGrace = cmp.Or(o.EndGrace, time.Second)
	o.Child.Grace = cmp.Or(o.Child.Grace, time.Second)
	return o
}

// Run connects to the publisher, starts a server, and stands between it and the client that writes to in and reads
// from out, until the server ends, in does, or ctx. The server and its process group are ended then. The
// error is a [*SocketError] or a [*RefusedError] if there are no roots, a [*child.StartError] if there is no server, and a
// [*child.ExitError] if it ended other than with status 0 and not by our signal. A read from in that blocks may go on after it, as
// may a write to out.
func Run(ctx context.Context, in io.Reader, out io.Writer, server process.Command, o Options) error {
	o = o.withDefaults()
	s, err := subscribe(ctx, o.Address, o.Secret, o.ConnectTimeout, o.Logger)
	if err != nil {
		return err
	}
	defer s.close()
	server.Env = append(server.Env[:len(server.Env):len(server.Env)], SecretVariable+"=")
	p, err := process.Start(ctx, server, o.Child)
	if err != nil {
		return err
	}
	r := newRelay(o, s.roots, out, p.Stdin())
	s.follow(r.changed)
	return r.run(ctx, in, p)
}

// run passes lines until one of the three ends, and then ends the server.
func (r *relay) run(ctx context.Context, in io.Reader, p *process.Process) error {
	var passing sync.WaitGroup
	done := make(chan struct{})
	passing.Go(func() { r.server.run(done) })
	passing.Go(func() { r.client.run(done) })
	read, ended := make(chan error, 1), make(chan error, 1)
	go func() { read <- r.fromClient(in) }()
	passing.Go(func() { ended <- r.fromServer(p.Stdout()) })
	var failure error
	ours := true
	select {
	case failure = <-read:
		r.finish(ctx, p)
	case failure = <-ended:
		ours = failure != nil
	case <-ctx.Done():
	}
	err := stop(ctx, p)
	close(done)
	within(writeGrace, &passing)
	_ = p.Stdout().Close()
	var exit *process.ExitError
	if errors.As(err, &exit) && exit.Code < 0 && ours {
		err = nil // the signal was ours
	}
	return errors.Join(err, failure)
}

// stop ends the server, and says how it ended.
func stop(ctx context.Context, p *process.Process) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
	defer cancel()
	if err := p.Stop(ctx); err != nil {
		return err
	}
	return p.Wait(context.WithoutCancel(ctx))
}

// writeGrace is how long a client may take to read the last of what the server said.
const writeGrace = 500 * time.Millisecond

// within waits for a group, but not longer than a grace.
func within(grace time.Duration, group *sync.WaitGroup) {
	waited := make(chan struct{})
	go func() {
		defer close(waited)
		group.Wait()
	}()
	late := time.NewTimer(grace)
	defer late.Stop()
	select {
	case <-waited:
	case <-late.C:
	}
}

// stopWithin bounds the end of a server that ignores it, with what comes before, below the 3 s of W9.
const stopWithin = 1500 * time.Millisecond

// finish waits for the calls that the relay may have to repeat.
func (r *relay) finish(ctx context.Context, p *process.Process) {
	late := time.NewTimer(r.options.EndGrace)
	defer late.Stop()
	select {
	case <-r.calls.none():
	case <-p.Done():
	case <-late.C:
	case <-ctx.Done():
	}
}
