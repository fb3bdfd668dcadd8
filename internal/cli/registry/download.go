package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/acp-agent/acp-agent/internal/files/namedfile"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/text/secret"
)

// Download returns the registry.json at a URL. It uses only encrypted connections, except to this
// machine. Its errors hide secrets in the URL.
func Download(ctx context.Context, address string) ([]byte, error) {
	const wait = time.Minute
	ctx, cancel := context.WithTimeoutCause(ctx, wait, fmt.Errorf("it took more than %v", wait))
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err == nil {
		err = checkDownload(request.URL)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", secret.HideURL(address), unwrapURL(err))
	}
	client := http.Client{CheckRedirect: func(next *http.Request, before []*http.Request) error {
		if len(before) > 5 {
			return errors.New("it redirects too many times")
		}
		if next.URL.Scheme != "https" && before[0].URL.Scheme == "https" {
			return errors.New("it redirects to an address without https")
		}
		return checkDownload(next.URL)
	}}
	defer client.CloseIdleConnections()
	response, err := client.Do(request)
	if err != nil {
		return nil, downloadError(ctx, address, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, downloadError(ctx, address, errors.New("the server answered "+response.Status))
	}
	raw, err := io.ReadAll(io.LimitReader(response.Body, MaxSize+1))
	if err == nil && len(raw) > MaxSize {
		err = fmt.Errorf("it has more than %s", text.Size(MaxSize))
	}
	if err != nil {
		return nil, downloadError(ctx, address, err)
	}
	return raw, nil
}

// checkDownload checks an address before a request is sent to it.
func checkDownload(u *url.URL) error {
	switch {
	case u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "":
		return errors.New("it must begin with https://")
	case u.Scheme == "http" && !secret.IsLoopback(u.Hostname()):
		return errors.New("what is downloaded without encryption can be changed on its way: use " +
			"https, or download it yourself and name the file")
	}
	return nil
}

// downloadError explains a failed download.
func downloadError(ctx context.Context, address string, err error) error {
	err = unwrapURL(err)
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	hint := ""
	if _, ok := errors.AsType[net.Error](err); ok {
		hint = "; without a connection, name a file that you have downloaded elsewhere"
	}
	return fmt.Errorf("cannot download %s: %w%s", secret.HideURL(address), err, hint)
}

// unwrapURL returns the cause of an error that quotes the address, which may contain secrets.
func unwrapURL(err error) error {
	if failed, ok := errors.AsType[*url.Error](err); ok {
		return failed.Err
	}
	return err
}

// ReadFile returns the content of a registry.json in a file.
func ReadFile(path string) ([]byte, error) {
	raw, err := namedfile.ReadBounded(path, MaxSize)
	if err != nil {
		return nil, fmt.Errorf("%w; give the registry.json that you downloaded, or its URL",
			namedfile.Explain(err))
	}
	return raw, nil
}
