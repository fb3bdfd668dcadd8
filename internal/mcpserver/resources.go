package mcpserver

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acp-agent/acp-agent/discovery"
)

// The URIs of the resources.
const (
	// RootsURI is the list of the roots, as list_roots gives it.
	RootsURI = "acp-agent://roots"
	// CatalogURI is what the roots hold for agents, as [discovery.Catalog] is encoded.
	CatalogURI = "acp-agent://catalog"
	// InstructionsURI is the instructions of all roots as one text, with a heading for each source.
	InstructionsURI = "acp-agent://instructions"
)

func (c *client) addResources(server *mcp.Server) {
	for _, r := range []struct {
		mcp.Resource
		read func(context.Context, *scope) (string, error)
	}{
		{mcp.Resource{URI: RootsURI, Name: "roots", Title: "Roots", MIMEType: "application/json",
			Description: "The folders that can be accessed, in order, and those that cannot, with why"}, readRoots},
		{mcp.Resource{URI: CatalogURI, Name: "catalog", Title: "Catalogue", MIMEType: "application/json",
			Description: "Instructions, skills, commands and MCP servers that are found in the roots, none of them started"}, readCatalog},
		{mcp.Resource{URI: InstructionsURI, Name: "instructions", Title: "Instructions", MIMEType: "text/markdown",
			Description: "The instructions that are found in the roots, each under the root and file that it is from"}, readInstructions},
	} {
		server.AddResource(&r.Resource, c.resource(r.MIMEType, r.read))
	}
}

func readRoots(_ context.Context, sc *scope) (string, error) {
	text, err := json.Marshal(sc.list())
	return string(text), err
}

func readCatalog(ctx context.Context, sc *scope) (string, error) {
	catalog, err := sc.catalog(ctx)
	if err != nil || catalog == nil {
		return `{"roots":[],"artifacts":[],"cuts":[]}`, err
	}
	text, err := json.Marshal(catalog)
	return string(text), err
}

func readInstructions(ctx context.Context, sc *scope) (string, error) {
	catalog, err := sc.catalog(ctx)
	if err != nil || catalog == nil {
		return "", err
	}
	return catalog.Instructions(discovery.EveryRoot).String(), nil
}

// resource serves resources/read of one resource.
func (c *client) resource(kind string, read func(context.Context, *scope) (string, error)) mcp.ResourceHandler {
	return func(ctx context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		var text string
		a := asker{
			revision: r.ProtocolVersion(), capabilities: r.ClientCapabilities(), responses: r.Params.InputResponses,
			state: r.Params.RequestState, parts: [][]byte{[]byte("resources/read"), []byte(r.Params.URI)},
		}
		err := c.within(ctx, a, anything, func(sc *scope) (err error) {
			text, err = read(ctx, sc)
			return err
		})
		if errors.Is(err, errQuestion) {
			return &mcp.ReadResourceResult{
				Contents: []*mcp.ResourceContents{}, InputRequests: mcp.InputRequestMap{rootsKey: &mcp.ListRootsParams{}},
				RequestState: c.server.seal.of(a.parts...),
			}, nil
		}
		if err != nil {
			return nil, internal(err)
		}
		return &mcp.ReadResourceResult{
			Contents:  []*mcp.ResourceContents{{URI: r.Params.URI, MIMEType: kind, Text: text}},
			Cacheable: private(),
		}, nil
	}
}

// private says that a result is for this client alone, and for now.
func private() mcp.Cacheable { return mcp.Cacheable{CacheScope: "private"} }

// internal is an error of ours as one of the protocol.
func internal(err error) error {
	if protocol := (*jsonrpc.Error)(nil); errors.As(err, &protocol) {
		return protocol
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}
}

// catalog scans the scope's roots. It returns nil if none is accessible.
func (sc *scope) catalog(ctx context.Context) (*discovery.Catalog, error) {
	if sc.ws == nil {
		return nil, nil
	}
	return discovery.Scan(ctx, sc.ws, discovery.Options{})
}
