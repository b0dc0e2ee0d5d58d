package probe

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
)

// userAgent is what servers know probes by.
const userAgent = "kube-probe/1.37"

const maxRedirects = 10

// errOtherHost ends a redirection to another host: the container answered, which is good enough for a warning.
var errOtherHost = errors.New("redirected to another host")

func (p *Prober) http(ctx context.Context, action *v1.HTTPGetAction, t Target, timeout time.Duration) (Result, string, error) {
	req, err := request(ctx, action, t)
	if err != nil {
		return Errored, "", err
	}
	resp, err := p.client(timeout).Do(req)
	if errors.Is(err, errOtherHost) {
		return Warning, "Probe terminated redirects", nil
	}
	if err != nil {
		return Failure, err.Error(), nil
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxOutput))
	if err != nil {
		return Failure, err.Error(), nil
	}
	if resp.StatusCode >= http.StatusOK && resp.StatusCode < http.StatusBadRequest {
		return Success, string(body), nil
	}
	return Failure, fmt.Sprintf("HTTP probe failed with statuscode: %d", resp.StatusCode), nil
}

func request(ctx context.Context, action *v1.HTTPGetAction, t Target) (*http.Request, error) {
	address, err := address(action.Host, action.Port, t)
	if err != nil {
		return nil, err
	}
	path, err := url.Parse(action.Path)
	if err != nil {
		return nil, fmt.Errorf("path of the request: %w", err)
	}
	scheme := strings.ToLower(string(action.Scheme))
	if scheme == "" {
		scheme = "http"
	}
	u := url.URL{Scheme: scheme, Host: address, Path: path.Path, RawQuery: path.RawQuery}
	if !strings.HasPrefix(u.Path, "/") {
		u.Path = "/" + u.Path
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", userAgent)
	req.Header.Set("Accept", "*/*")
	for _, h := range action.HTTPHeaders {
		if strings.EqualFold(h.Name, "Host") {
			req.Host = h.Value
			continue
		}
		if strings.EqualFold(h.Name, "User-Agent") || strings.EqualFold(h.Name, "Accept") {
			req.Header.Set(h.Name, h.Value)
			continue
		}
		req.Header.Add(h.Name, h.Value)
	}
	return req, nil
}

// client makes one connection a request and doesn't verify certificates: a probe asks whether the server answers, not who it is.
func (p *Prober) client(timeout time.Duration) *http.Client {
	return &http.Client{
		Timeout: timeout,
		Transport: &http.Transport{
			DialContext:       p.Dial,
			TLSClientConfig:   &tls.Config{InsecureSkipVerify: true},
			DisableKeepAlives: true,
		},
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			if req.URL.Hostname() != via[0].URL.Hostname() {
				return errOtherHost
			}
			if len(via) >= maxRedirects {
				return fmt.Errorf("stopped after %d redirects", maxRedirects)
			}
			return nil
		},
	}
}

func isTimeout(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || status.Code(err) == codes.DeadlineExceeded
}
