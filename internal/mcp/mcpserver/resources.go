package mcpserver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The URIs of the resources.
const (
	rootsURI   = "acp-agent://roots"   // the roots, as list_roots returns them
	catalogURI = "acp-agent://catalog" // the JSON encoding of a discovery.Catalog
	// the instructions of all roots as one text, with a heading for each source
	instructionsURI = "acp-agent://instructions"
)

func (c *client) addResources() {
	for _, r := range []struct {
		mcp.Resource
		read func(context.Context, *scope) (string, error)
	}{
		{mcp.Resource{URI: rootsURI, Name: "roots", Title: "Roots", MIMEType: "application/json",
			Description: "The accessible folders in order, and those that are not " +
				"accessible, with the reason"}, readRoots},
		{mcp.Resource{URI: catalogURI, Name: "catalog", Title: "Catalogue",
			MIMEType: "application/json",
			Description: "Instructions, skills, commands and MCP servers found in the folders; " +
				"none of the servers is started"}, readCatalog},
		{mcp.Resource{URI: instructionsURI, Name: "instructions", Title: "Instructions",
			MIMEType:    "text/markdown",
			Description: "The instructions found in the folders, each under its folder and file"},
			readInstructions},
	} {
		c.sdk.AddResource(&r.Resource, c.resourceHandler(r.MIMEType, r.read))
	}
}

func readRoots(_ context.Context, sc *scope) (string, error) {
	list, err := json.Marshal(sc.list())
	return string(list), err
}

func readCatalog(ctx context.Context, sc *scope) (string, error) {
	catalog, err := sc.catalog(ctx)
	if err != nil || catalog == nil {
		return `{"roots":[],"artifacts":[],"cuts":[]}`, err
	}
	encoded, err := json.Marshal(catalog)
	return string(encoded), err
}

func readInstructions(ctx context.Context, sc *scope) (string, error) {
	catalog, err := sc.catalog(ctx)
	if err != nil {
		return "", err
	}
	instructions := ""
	if catalog != nil {
		instructions = catalog.Instructions(nil).String()
	}
	// the SDK leaves out an empty text, which clients require
	return cmp.Or(instructions, "The folders contain no instructions.\n"), nil
}

// resourceHandler returns the handler of resources/read for one resource.
func (c *client) resourceHandler(
	mimeType string, read func(context.Context, *scope) (string, error),
) mcp.ResourceHandler {
	return func(ctx context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		request := scopedRequest{r, r.Params.InputResponses, r.Params.RequestState,
			[]string{"resources/read", r.Params.URI}, false}
		readIn := func(sc *scope) (*mcp.ReadResourceResult, error) {
			content, err := read(ctx, sc)
			return &mcp.ReadResourceResult{
				Contents: []*mcp.ResourceContents{{URI: r.Params.URI, MIMEType: mimeType,
					Text: content}},
				Cacheable: notShared(),
			}, err
		}
		result, err := inScope(ctx, c, request, readIn,
			func(requests mcp.InputRequestMap, state string) *mcp.ReadResourceResult {
				return &mcp.ReadResourceResult{InputRequests: requests, RequestState: state,
					Contents: []*mcp.ResourceContents{}}
			})
		return result, protocolError(err)
	}
}

// notShared marks a result as specific to one client.
func notShared() mcp.Cacheable { return mcp.Cacheable{CacheScope: "private"} }

// protocolError returns err as an error of the protocol, or nil for nil.
func protocolError(err error) error {
	protocol := (*jsonrpc.Error)(nil)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &protocol):
		return protocol
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}
}
