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

// Reading is a transport to the engine that refuses every request that does not only read. Base is the transport below.
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

// longGateway matches a gateway with a prefix length. Engines before v28 write it for IPv6 subnets that they chose. The
// client expects an address and would refuse the whole list.
var longGateway = regexp.MustCompile(`("Gateway":\s*"[0-9A-Fa-f:.]+)/[0-9]{1,3}"`)

// mended removes the prefix lengths from the gateways in an answer. It cannot match inside of a string, because quotes
// are escaped there.
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
