package leave

import (
	"net/http"
	"regexp"

	"berth/internal/docker/pin"
)

// Connector changes networks of a Docker Engine, with the rights of whoever opened it. It can read, connect and
// disconnect containers, create and remove networks, and start containers.
type Connector struct{ *pin.Connector }

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

// Open returns the engine at a URL. It does not connect yet.
func Open(host string) (*Connector, error) {
	connector, err := pin.OpenWider(host, mayDo)
	return &Connector{connector}, err
}
