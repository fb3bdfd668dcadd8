package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/proxy"
	"github.com/acp-agent/acp-agent/internal/files/namedfile"
	"github.com/acp-agent/acp-agent/internal/mcp/mcpclient"
	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/internal/serve"
	"github.com/acp-agent/acp-agent/internal/serve/loglimit"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/text/secret"
	"github.com/acp-agent/acp-agent/internal/usage"
	"github.com/acp-agent/acp-agent/sessionstore/postgres"
	"github.com/acp-agent/acp-agent/workspace"
)

// serveFlags are the flags of the serve subcommand.
type serveFlags struct {
	serve.Options // as far as flags give its members

	listen     string
	cert, key  string
	metrics    string
	audit      string
	mustAudit  bool
	processes  proxy.PoolLimits
	origins    []string
	userHeader string
	proxies    []string
	userWithin []string
}

// newServe returns the command that serves editors over the network.
func newServe(set *settings) *cobra.Command {
	f := serveFlags{
		listen: "127.0.0.1:8765", processes: proxy.PoolLimits{PerUser: 20, Total: 100},
		Options: serve.Options{Memory: 512 << 20, Limits: serve.DefaultLimits(),
			StoredBytes: 10 << 30, Grace: 25 * time.Second},
	}
	return set.accept(&cobra.Command{
		Use:  "serve",
		Args: downstreamArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return err
			}
			return f.serve(cmd.Context(), set, args)
		},
	}, needsAll, flags{
		"listen": &f.listen, "tls-cert": &f.cert, "tls-key": &f.key,
		"behind-proxy": &f.BehindProxy, "origin": &f.origins, "page": &f.Page,
		"user-header": &f.userHeader, "proxy": &f.proxies, "user-within": &f.userWithin,
		"metrics": &f.metrics, "audit": &f.audit, "audit-required": &f.mustAudit,
		"log-json": &set.logJSON, "grace": (*age)(&f.Grace), "delete-after": (*age)(&f.DeleteAfter),
		"max-connections":     intValue{&f.Limits.Connections, 1},
		"max-sessions":        intValue{&f.Limits.Sessions, 1},
		"max-turns":           intValue{&f.Limits.Turns, 1},
		"max-stored":          intValue{&f.StoredBytes, 1},
		"max-agents":          intValue{&f.processes.Total, 1},
		"max-agents-per-user": intValue{&f.processes.PerUser, 1},
		"message-memory":      intValue{&f.Memory, 1},
	})
}

// check reports flags that do not fit together.
func (f *serveFlags) check() error {
	switch {
	case (f.cert == "") != (f.key == ""):
		return usage.Errorf("--tls-cert and --tls-key need each other")
	case f.mustAudit && f.audit == "":
		return usage.Errorf("--audit-required needs --audit FILE")
	}
	return nil
}

// serve serves clients until ctx ends.
func (f serveFlags) serve(ctx context.Context, set *settings, args []string) error {
	d, err := set.downstream(set.choice(args))
	if err != nil {
		return err
	}
	if d.command.Path != "" {
		if err := d.agent.Profile.CheckInstalled(d.command); err != nil {
			return err
		}
	}
	d.model.Environment = mcpclient.BasicEnvironment() // as for MCP servers
	d.model.OnlyInSandbox = true
	d.agent.Sandboxer, d.model.Config = nil, "" // clients are on other machines
	logger, closeLog, err := set.openLog()
	if err != nil {
		return err
	}
	defer closeLog()
	logger, endLog := loglimit.New(logger, loglimit.Omit)
	defer endLog()
	h, closeTrace, err := set.openHost(logger)
	if err != nil {
		return err
	}
	defer closeTrace()
	o, err := f.options()
	if err != nil {
		return err
	}
	if o.Notify = set.config.NotifyCommand(set.withheld()); o.Notify != nil {
		if err := o.Notify.Find(); err != nil {
			return fmt.Errorf("notify, in the configuration file: %w", err)
		}
	}
	o.Accounts = set.accounts()
	store, err := set.serverStore(logger)
	if err != nil {
		return err
	}
	defer store.Close()
	if database, ok := store.(*postgres.Store); ok {
		if _, err := database.Check(ctx); err != nil {
			return err
		}
	}
	answers := answerers{host: h, downstream: d, pool: proxy.NewPool(f.processes)}
	o.Serving, o.Workspace, o.Store, o.Log = answers.serving, h.roots, store, logger
	o.MaxLine = set.maxLine
	err = f.listenAndServe(ctx, set.streams, o)
	if err := answers.pool.Close(context.WithoutCancel(ctx)); err != nil {
		logger.Warn("cannot end the agents", "error", err)
	}
	return err
}

// options returns the options that are given by flags.
func (f serveFlags) options() (o serve.Options, err error) {
	o = f.Options
	o.HurryUp, o.Version = endSignals(), ownVersion().Number
	if o.Origins, err = serve.ParseOrigins(f.origins); err != nil {
		return o, usage.Errorf("--origin: %v", err)
	}
	o.UserHeader, err = f.parseUserHeader()
	return o, err
}

// listenAndServe opens what clients and operators use, and serves until ctx ends.
func (f serveFlags) listenAndServe(ctx context.Context, s streams, o serve.Options) error {
	listener, err := f.open(ctx, o.Log)
	if err != nil {
		return err
	}
	closeAudit, err := f.openAudit(&o, s.err)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	defer closeAudit()
	server := serve.NewServer(o)
	if f.metrics != "" {
		metrics, err := listenTCP(ctx, "--metrics", f.metrics)
		if err != nil {
			return errors.Join(err, listener.Close())
		}
		defer server.ServeMetrics(metrics)()
		s.note("metrics on http://%s/metrics", metrics.Addr())
	}
	scheme := "ws"
	if f.cert != "" {
		scheme = "wss"
	}
	s.note("serving on %s://%s%s", scheme, listener.Addr(), serve.Path)
	switch list, err := o.Accounts.List(); {
	case err != nil:
		s.note("a user cannot connect: %v", err)
	case len(list) == 0:
		s.note("nobody can connect yet; see acp-agent tokens add --help")
	}
	return server.Serve(ctx, listener)
}

// answerers chooses what answers the users of a server.
type answerers struct {
	host
	downstream downstream
	pool       *proxy.Pool
}

// serving returns the options of a connection.
func (a answerers) serving(u serve.User) (_ acp.Options, err error) {
	d, h := a.downstream, a.host
	if name := u.Account.Agent; name != "" {
		if d, err = a.set.downstream(choice{agent: name, file: "tokens"}); err != nil {
			return acp.Options{}, err
		}
		d.agent.Sandboxer = nil
	}
	// Connections of a user share processes if they have the same rights: a token that is replaced
	// may give others.
	rights := fmt.Sprintf("%q", []any{u.Account.Agent, u.Account.Within.Strings()})
	h.proxy = func(c process.Command, o proxy.Options) backend.Backend {
		return a.pool.New(u.Account.Name, rights, c, o)
	}
	h.roots, h.log = u.Workspace, u.Log
	o := h.serving(d)
	o.ConsentDir = a.set.dir("users", u.Account.Name, consentName)
	o.Permissions = u.Account.Narrow(o.Permissions)
	if b, budgets := u.Account.Budget, o.Budgets; !b.IsZero() {
		o.Budgets = func(cwd workspace.Dir) []acp.Budget { return append(budgets(cwd), b) }
	}
	o.Worktrees = acp.Worktrees{} // they would lie outside of what the user may open
	o.Trace = a.trace.of("editor[" + u.Connection + "]")
	o.RemoteRights, err = a.set.config.Agents[d.agent.Profile.Name].RemoteRights()
	return o, err
}

// parseUserHeader returns the header in which proxies name users.
func (f serveFlags) parseUserHeader() (serve.UserHeader, error) {
	switch {
	case f.userHeader == "" && len(f.proxies)+len(f.userWithin) > 0:
		return serve.UserHeader{}, usage.Errorf("--proxy and --user-within need --user-header")
	case f.userHeader == "":
		return serve.UserHeader{}, nil
	case !f.BehindProxy:
		return serve.UserHeader{}, usage.Errorf("--user-header needs --behind-proxy and --proxy")
	}
	for _, dir := range f.userWithin {
		first, _, _ := strings.Cut(dir+"/", "{user}")
		if base := filepath.Dir(first + "x"); !namedfile.IsDir(base) {
			return serve.UserHeader{}, usage.Errorf("--user-within: %s is not a folder: create "+
				"it, or give another one", text.Printable(base))
		}
	}
	within, err := usage.Absolute(f.userWithin...)
	if err != nil {
		return serve.UserHeader{}, err
	}
	h, err := serve.ParseUserHeader(f.userHeader, f.proxies, within.Strings())
	if err != nil {
		return h, usage.Errorf("--user-header: %v", err)
	}
	return h, nil
}

// open listens on the address, with TLS if there is a certificate.
func (f serveFlags) open(ctx context.Context, log *slog.Logger) (net.Listener, error) {
	host, _, err := net.SplitHostPort(f.listen)
	if err != nil {
		return nil, usage.Errorf("--listen: invalid address %q; use one such as 127.0.0.1:8765 or "+
			":8765", f.listen)
	}
	if !secret.IsLoopback(host) && f.cert == "" && !f.BehindProxy {
		return nil, usage.Errorf("--listen: %s can be reached from other machines: add --tls-cert "+
			"and --tls-key, or --behind-proxy if connections come from a proxy that terminates TLS",
			f.listen)
	}
	listener, err := listenTCP(ctx, "--listen", f.listen)
	if err != nil || f.cert == "" {
		return listener, err
	}
	withTLS, err := serve.WithCertificate(listener, f.cert, f.key, log)
	if err != nil {
		return nil, errors.Join(usage.Errorf("--tls-cert: %v", namedfile.Explain(err)),
			listener.Close())
	}
	return withTLS, nil
}

// openAudit opens the audit log of the server, and returns a function that closes it.
func (f serveFlags) openAudit(o *serve.Options, stderr io.Writer) (func(), error) {
	if f.audit == "" {
		o.Audit = slog.New(slog.DiscardHandler)
		return func() {}, nil
	}
	file, err := openAppend("audit", f.audit, stderr)
	if err != nil {
		return nil, err
	}
	excess := loglimit.Omit
	if f.mustAudit {
		o.AuditErr, excess = file.err, loglimit.Delay
	}
	log, end := serve.NewAudit(file, excess)
	o.Audit = log
	return func() {
		end()
		file.close()
	}, nil
}
