package mcpclient

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// newHandlerLocked returns a handler that signs in as a client with an id. If the id is the address
// of a document, or "", acp-agent registers itself where the authorization server does not accept
// documents.
func (a *authorizer) newHandlerLocked(id, secret string) (*auth.AuthorizationCodeHandler, error) {
	redirect := "http://" + a.address + redirectPath
	c := &auth.AuthorizationCodeHandlerConfig{
		RedirectURL:              redirect,
		RequestRefreshToken:      true,
		Client:                   a.client(),
		NewTokenSource:           a.server.newTokenSource,
		AuthorizationCodeFetcher: a.fetchCode,
	}
	isDocument := strings.HasPrefix(id, "https://")
	if isDocument {
		c.ClientIDMetadataDocumentConfig = &auth.ClientIDMetadataDocumentConfig{URL: id}
	}
	if id != "" && !isDocument {
		c.PreregisteredClient = &oauthex.ClientCredentials{ClientID: id}
		if secret != "" {
			c.PreregisteredClient.ClientSecretAuth = &oauthex.ClientSecretAuth{ClientSecret: secret}
		}
		return auth.NewAuthorizationCodeHandler(c)
	}
	c.DynamicClientRegistrationConfig = &auth.DynamicClientRegistrationConfig{
		Metadata: &oauthex.ClientRegistrationMetadata{
			ClientName: a.server.set.options.Name, RedirectURIs: []string{redirect},
			TokenEndpointAuthMethod: "none", ResponseTypes: []string{"code"},
			GrantTypes: []string{"authorization_code", "refresh_token"},
		},
	}
	return auth.NewAuthorizationCodeHandler(c)
}

// withDocument makes the document of acp-agent itself the client for an authorization server that
// registers none. It returns nil if the document cannot be used.
func (a *authorizer) withDocument(ctx context.Context) *auth.AuthorizationCodeHandler {
	policy := a.server.config.Policy
	_, accepted := a.network.registration()
	if !accepted || policy.ClientDocument == "" ||
		!isServed(ctx, a.client(), policy.ClientDocument) {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	handler, err := a.newHandlerLocked(policy.ClientDocument, "")
	if err != nil {
		return nil
	}
	a.handler = handler
	return handler
}

// isServed reports whether there is a document about a client at an address, without redirects, as
// an authorization server will read it.
func isServed(ctx context.Context, client *http.Client, address string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return false
	}
	res, err := client.Do(req)
	if err != nil {
		return false
	}
	defer res.Body.Close()
	var document struct {
		ID string `json:"client_id"`
	}
	err = json.NewDecoder(io.LimitReader(res.Body, maxMetadata)).Decode(&document)
	return err == nil && res.StatusCode == http.StatusOK && document.ID == address &&
		res.Request.URL.String() == address
}
