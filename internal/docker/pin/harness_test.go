package pin

import (
	"context"
	"net/netip"
	"testing"

	"berth/internal/docker/dockertest"
	"berth/internal/ipam/ipamtest"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var must = ipamtest.Must

func addrs(texts ...string) (all []netip.Addr) {
	for _, text := range texts {
		all = append(all, netip.MustParseAddr(text))
	}
	return all
}

// object is a JSON object.
type object = dockertest.Object

const webID = "aaaabbbbccccddddeeeeffff0000111122223333444455556666777788889999"

// newSeated returns an engine with the container web. On its network, web has every setting that a user can make.
func newSeated(t *testing.T) (*dockertest.Engine, *dockertest.Container) {
	t.Helper()
	e := dockertest.New(t)
	web := &dockertest.Container{ID: webID, Name: "web", MAC: "02:42:0a:09:00:77", On: object{
		"IPAMConfig": object{"LinkLocalIPs": []string{"169.254.8.8"}}, "Aliases": []string{"foo", "aaaabbbbcccc"},
		"Links": []string{"db:store"}, "DriverOpts": object{"mode": "a b"}, "NetworkID": "n1", "EndpointID": "e1",
		"IPAddress": "10.9.0.5", "GlobalIPv6Address": "fd00:9::5", "MacAddress": "02:42:00:00:00:01"}}
	e.Place.Containers = []*dockertest.Container{web}
	return e, web
}

func open(e *dockertest.Engine) *Connector {
	e.Helper()
	h, err := OpenConnector(e.URL())
	must(e, err)
	e.Cleanup(h.Close)
	return h
}

func endpoint(e *dockertest.Engine, h *Connector) *Endpoint {
	e.Helper()
	ep, err := h.Endpoint(context.Background(), webID, dockertest.Front)
	must(e, err)
	return ep
}
