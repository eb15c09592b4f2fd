package leave

import (
	"context"
	"net/http"
	"regexp"

	"berth/internal/docker/pin"

	"github.com/moby/moby/client"
)

// Hand is a Docker Engine in which networks are made anew, with the rights of whoever opened it. It can read, connect
// and disconnect containers, create and remove networks, and start containers.
type Hand struct{ pin *pin.Hand }

var (
	creates = regexp.MustCompile(`^(/v[0-9.]+)?/networks/create$`)
	removes = regexp.MustCompile(`^(/v[0-9.]+)?/networks/[^/]+$`)
	starts  = regexp.MustCompile(`^(/v[0-9.]+)?/containers/[^/]+/start$`)
)

func mayDo(req *http.Request) bool {
	switch req.Method {
	case http.MethodPost:
		return creates.MatchString(req.URL.Path) || starts.MatchString(req.URL.Path)
	case http.MethodDelete:
		return removes.MatchString(req.URL.Path)
	}
	return false
}

// Open returns the engine that listens at a URL. It connects to nothing yet.
func Open(host string) (*Hand, error) {
	hand, err := pin.OpenWider(host, mayDo)
	return &Hand{hand}, err
}

// Close ends the connections that are not in use.
func (h *Hand) Close() { h.pin.Close() }

func (h *Hand) api(ctx context.Context) (*client.Client, error) { return h.pin.API(ctx) }
