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

type serveFlags struct {
	listen, cert, key   string
	metrics, audit      string
	mustAudit           bool
	behindProxy, page   bool
	origins             []string
	userHeader          string
	proxies, userWithin []string
	grace, deleteAfter  age
	limits              acp.Limits
	storedBytes, memory int
	processes           proxy.PoolLimits
}

func newServe(set *settings) *cobra.Command {
	f := serveFlags{
		listen: "127.0.0.1:8765", processes: proxy.PoolLimits{PerUser: 20, Total: 100},
		memory: 512 << 20, limits: serve.DefaultLimits(), storedBytes: 10 << 30,
		grace: age(25 * time.Second),
	}
	return set.newCommand("serve", downstreamArgs, needsAll, flags{
		"listen": &f.listen, "tls-cert": &f.cert, "tls-key": &f.key,
		"behind-proxy": &f.behindProxy, "origin": &f.origins, "page": &f.page,
		"user-header": &f.userHeader, "proxy": &f.proxies, "user-within": &f.userWithin,
		"metrics": &f.metrics, "audit": &f.audit, "audit-required": &f.mustAudit,
		"log-json": &set.logJSON, "grace": &f.grace, "delete-after": &f.deleteAfter,
		"max-connections":     intValue{&f.limits.Connections, 1},
		"max-sessions":        intValue{&f.limits.Sessions, 1},
		"max-turns":           intValue{&f.limits.Turns, 1},
		"max-stored":          intValue{&f.storedBytes, 1},
		"max-agents":          intValue{&f.processes.Total, 1},
		"max-agents-per-user": intValue{&f.processes.PerUser, 1},
		"message-memory":      intValue{&f.memory, 1},
	}, func(cmd *cobra.Command, args []string) error { return f.serve(cmd.Context(), set, args) })
}

// serve serves clients until ctx ends.
func (f serveFlags) serve(ctx context.Context, set *settings, args []string) error {
	switch {
	case (f.cert == "") != (f.key == ""):
		return usage.Errorf("--tls-cert and --tls-key need each other")
	case f.mustAudit && f.audit == "":
		return usage.Errorf("--audit-required needs --audit FILE")
	}
	d, err := set.downstream(set.choice(args))
	if err != nil {
		return err
	}
	if d.command.Path != "" {
		if err := d.agent.Profile.CheckInstalled(d.command); err != nil {
			return err
		}
	}
	m, closeMachine, err := set.openMachine()
	if err != nil {
		return err
	}
	defer closeMachine()
	logger, endLog := loglimit.New(m.log, loglimit.Omit)
	defer endLog()
	origins, err := serve.ParseOrigins(f.origins)
	if err != nil {
		return usage.Errorf("--origin: %v", err)
	}
	header, err := f.parseUserHeader()
	if err != nil {
		return err
	}
	notify := set.config.NotifyCommand(set.withheld())
	if notify != nil {
		if err := notify.Find(); err != nil {
			return fmt.Errorf("notify, in the configuration file: %w", err)
		}
	}
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
	audit, auditErr, closeAudit, err := f.openAudit(set.err)
	if err != nil {
		return err
	}
	defer closeAudit()
	answers := answerers{machine: m, downstream: d.forOthers(), pool: proxy.NewPool(f.processes)}
	err = f.listenAndServe(ctx, set.streams, serve.Options{
		Accounts: set.accounts(), Serving: answers.serving, Workspace: m.roots, Store: store,
		MaxLine: set.maxLine, Limits: f.limits, StoredBytes: f.storedBytes,
		DeleteAfter: time.Duration(f.deleteAfter), Memory: f.memory, Origins: origins,
		Page: f.page, Notify: notify, UserHeader: header, BehindProxy: f.behindProxy,
		Grace: time.Duration(f.grace), HurryUp: endSignals(), Version: ownVersion().Number,
		Log: logger, Audit: audit, AuditErr: auditErr,
	})
	if err := answers.pool.Close(context.WithoutCancel(ctx)); err != nil {
		logger.Warn("cannot end the agents", "error", err)
	}
	return err
}

// forOthers returns d for clients on other machines.
func (d downstream) forOthers() downstream {
	d.model.Environment = mcpclient.BasicEnvironment() // as for MCP servers
	d.model.OnlyInSandbox = true
	d.agent.Sandboxer, d.model.Config = nil, ""
	return d
}

// listenAndServe opens what clients and operators use, and serves until ctx ends.
func (f serveFlags) listenAndServe(ctx context.Context, s streams, o serve.Options) error {
	listener, err := f.open(ctx, o.Log)
	if err != nil {
		return err
	}
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
	machine    machine
	downstream downstream
	pool       *proxy.Pool
}

// serving returns the options of a connection.
func (a answerers) serving(u serve.User) (_ acp.Options, err error) {
	d, m := a.downstream, a.machine
	if name := u.Account.Agent; name != "" {
		if d, err = m.set.downstream(choice{agent: name, file: "tokens"}); err != nil {
			return acp.Options{}, err
		}
		d = d.forOthers()
	}
	// Connections of a user share processes if they have the same rights: a token that is replaced
	// may give others.
	rights := fmt.Sprintf("%q", []any{u.Account.Agent, u.Account.Within.Strings()})
	m.proxy = func(c process.Command, o proxy.Options) backend.Backend {
		return a.pool.New(u.Account.Name, rights, c, o)
	}
	m.roots, m.log = u.Workspace, u.Log
	o := m.serving(d)
	o.ConsentDir = m.set.dir("users", u.Account.Name, consentName)
	shared := o.Permissions
	o.Permissions = func(cwd workspace.Dir) *acp.Permissions {
		return u.Account.Narrow(shared(cwd))
	}
	if b, budgets := u.Account.Budget, o.Budgets; !b.IsZero() {
		o.Budgets = func(cwd workspace.Dir) []acp.Budget { return append(budgets(cwd), b) }
	}
	o.Worktrees = acp.Worktrees{} // they would lie outside of what the user may open
	o.Trace = m.trace.of("editor[" + u.Connection + "]")
	o.RemoteRights, err = m.set.config.Agents[d.agent.Profile.Name].RemoteRights()
	return o, err
}

// parseUserHeader returns the header in which proxies name users.
func (f serveFlags) parseUserHeader() (serve.UserHeader, error) {
	switch {
	case f.userHeader == "" && len(f.proxies)+len(f.userWithin) > 0:
		return serve.UserHeader{}, usage.Errorf("--proxy and --user-within need --user-header")
	case f.userHeader == "":
		return serve.UserHeader{}, nil
	case !f.behindProxy:
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
	if !secret.IsLoopback(host) && f.cert == "" && !f.behindProxy {
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

// openAudit opens the audit log of the server, which has lines of JSON. failed returns why the last
// line is missing, or nil if the server need not know.
func (f serveFlags) openAudit(stderr io.Writer) (
	log *slog.Logger, failed func() error, end func(), err error,
) {
	failed = func() error { return nil }
	if f.audit == "" {
		return slog.New(slog.DiscardHandler), failed, func() {}, nil
	}
	file, err := openAppend("audit", f.audit, stderr)
	if err != nil {
		return nil, nil, nil, err
	}
	excess := loglimit.Omit
	if f.mustAudit {
		failed, excess = file.err, loglimit.Delay
	}
	log, endLog := loglimit.New(slog.New(slog.NewJSONHandler(file, nil)), excess)
	return log, failed, func() {
		endLog()
		file.close()
	}, nil
}
