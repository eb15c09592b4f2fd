package edit_test

import (
	"strings"
	"testing"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
	"berth/internal/ipam/service"
)

// A request with two owners that would have the same name in DNS is refused. The same owner twice is no clash. A
// refused request leaves nothing behind.
func TestNameClashInRequest(t *testing.T) {
	known := ipam.Known{NameHolder: func(_, network, owner string) (name, other string) {
		if owner == "HERE" {
			other = "here"
		}
		if owner == "known" {
			return "", ""
		}
		return strings.ToLower(owner) + "." + network, other
	}}
	r := ipamtest.New(t)
	s, err := service.Open(ctx, service.Config{Store: r.Store, Host: "alpha", Known: known})
	fine(t, err)
	r.S = s
	r.Run(`
		network home subnet=192.0.2.0/24,pool
		reserve home tv + reserve home TV ! inuse; tv.home would be the name of tv on network home, and TV
		take home TV pool + reserve home tv ! inuse; tv.home would be the name of TV on network home, and tv
		reserve home new + reserve home HERE ! inuse; here.home is the name of here on network home, and HERE
		take home tv pool + take home tv pool + reserve home known + reserve home new
		# of those that were refused, nothing is remembered
		reserve home TV
	`)
}
