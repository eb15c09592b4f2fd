package docker

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
)

// Reading lets nothing through to the engine but what reads, whatever asks. Base is the way to it.
type Reading struct{ Base *http.Transport }

func (r *Reading) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method != http.MethodGet && req.Method != http.MethodHead {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, fmt.Errorf("%s %s is not sent: Berth only reads from the engine", req.Method, req.URL.Path)
	}
	resp, err := r.Base.RoundTrip(req)
	if err != nil {
		return resp, err
	}
	if !strings.Contains(req.URL.Path, "/networks") {
		return resp, nil
	}
	return mend(resp)
}

// longGateway is a gateway as engines before v28 write that of an IPv6 subnet which they chose themselves: with the
// length of its prefix. The client, which wants an address there, would refuse the whole list for it.
var longGateway = regexp.MustCompile(`("Gateway":\s*"[0-9A-Fa-f:.]+)/[0-9]{1,3}"`)

// mended is an answer with the prefixes taken off its gateways. What looks like one elsewhere is in a string, where its
// quotes are escaped.
func mended(body []byte) []byte { return longGateway.ReplaceAll(body, []byte(`$1"`)) }

func mend(resp *http.Response) (*http.Response, error) {
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil {
		return nil, err
	}
	body = mended(body)
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	resp.Header.Set("Content-Length", strconv.Itoa(len(body)))
	return resp, nil
}
