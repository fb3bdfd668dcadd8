package mcpserver

//lint:file-ignore SA1019 the SDK marks roots as deprecated (SEP-2577); they are supported for existing clients

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"reflect"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acp-agent/acp-agent/internal/mcp/mcproots"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// rootsKey is the key of the request for roots in a result.
const rootsKey = "roots"

// errInputRequired is returned if a modern client must be asked for its roots first.
var errInputRequired = errors.New("the client must be asked for its roots")

// scopedRequest is a request that is served in the scope of its client.
type scopedRequest struct {
	versioned
	// responses answer the input requests of an earlier result, whose request state is state.
	responses mcp.InputResponseMap
	state     string
	// identity holds the method and arguments, which must be the same when the request is repeated
	// with responses.
	identity []string
	// needsFiles reports whether the request is useless without accessible files.
	needsFiles bool
}

// versioned is a request of the SDK that contains the client's revision and capabilities.
type versioned interface {
	ProtocolVersion() string
	ClientCapabilities() *mcp.ClientCapabilities
}

// withScope calls use with the scope of a request. It returns errInputRequired if the client must
// be asked first, and a *[jsonrpc.Error] if the request must be answered with that.
func (c *client) withScope(ctx context.Context, r scopedRequest, use func(*scope) error) error {
	switch {
	case c.server.configured != nil:
		return use(c.server.configured)
	case c.server.options.Session != nil:
		sc := c.server.openSession(ctx)
		defer sc.close()
		return use(sc)
	case mcproots.IsModern(r.ProtocolVersion()):
		return c.withModernScope(ctx, r, use)
	}
	f := c.follower.Load()
	if f == nil {
		return use(closedScope(sourceNone, noCapability))
	}
	if err := c.awaitReady(ctx); err != nil {
		return err
	}
	used := false
	err := f.use(ctx, func(sc *scope) error {
		used = true
		return use(sc)
	})
	if used || ctx.Err() != nil {
		return err
	}
	return use(closedScope(sourceClient, err.Error()))
}

// inScope returns the result of use in the scope of a request, or that of ask if the client must be
// asked for its roots first. Both have the same type.
func inScope[R any](
	ctx context.Context, c *client, r scopedRequest, use func(*scope) (R, error),
	ask func(requests mcp.InputRequestMap, state string) R,
) (result R, err error) {
	err = c.withScope(ctx, r, func(sc *scope) (err error) {
		result, err = use(sc)
		return err
	})
	if errors.Is(err, errInputRequired) {
		requests := mcp.InputRequestMap{rootsKey: &mcp.ListRootsParams{}}
		return ask(requests, c.server.signer.sign(r.identity...)), nil
	}
	return result, err
}

// withModernScope is withScope for a modern client.
func (c *client) withModernScope(
	ctx context.Context, r scopedRequest, use func(*scope) error,
) error {
	s := c.server
	if has := r.ClientCapabilities(); has == nil || has.RootsV2 == nil {
		if r.needsFiles {
			return &jsonrpc.Error{
				Code: mcp.CodeMissingRequiredClientCapabilities,
				Message: "this needs the client's roots: declare the roots capability, or start " +
					"the server with --dir DIR",
				Data: []byte(`{"requiredCapabilities":{"roots":{}}}`),
			}
		}
		return use(closedScope(sourceNone, noCapability))
	}
	if r.state != "" && !s.signer.verify(r.state, r.identity...) {
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams,
			Message: "the requestState belongs to another request: call again without it"}
	}
	response, ok := r.responses[rootsKey]
	if !ok || r.state == "" {
		return errInputRequired
	}
	if !s.warned.Swap(true) {
		s.log.Warn("using a client's roots, which this MCP revision deprecates; consider naming "+
			"directories with --dir instead", "revision", r.ProtocolVersion())
	}
	list, ok := response.(*mcp.ListRootsResult)
	if !ok {
		return use(closedScope(sourceClient, "the client's answer is not a list of roots"))
	}
	sc, err := s.openList(ctx, list)
	if err != nil {
		return err
	}
	defer sc.close()
	if !reflect.DeepEqual(c.listed.Swap(list), list) {
		c.promptsChanged()
	}
	return use(sc)
}

// noCapability is why a client without the roots capability has no files.
const noCapability = "the client has no roots capability, and the server was started without --dir"

// signer signs the request that asked for roots, so that the answer is accepted only for the same
// request. That way unanswered requests need not be remembered.
type signer struct{ key [32]byte }

// sign returns the signature of the parts in this order.
func (s signer) sign(parts ...string) string {
	mac := hmac.New(sha256.New, s.key[:])
	_, _ = mac.Write(strictjson.Encode(parts))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// verify reports whether signature is that of the parts.
func (s signer) verify(signature string, parts ...string) bool {
	return hmac.Equal([]byte(signature), []byte(s.sign(parts...)))
}
