package driver

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"berth/internal/ipam"

	api "github.com/docker/go-plugins-helpers/ipam"
)

// TestNameServers tests that the addresses of name servers are avoided, because the engine refuses a chosen subnet that
// contains one. Lines that do not parse are ignored.
func TestNameServers(t *testing.T) {
	for _, row := range []struct{ text, want string }{
		{"", ""},
		{"nameserver 10.0.0.1", "10.0.0.1/32"},
		{"nameserver 10.0.0.1\nnameserver 10.0.0.2\n", "10.0.0.1/32 10.0.0.2/32"},
		{"# nameserver 10.0.0.1\n; nameserver 10.0.0.2\nsearch nameserver 10.0.0.3", ""},
		{"\tnameserver\t10.0.0.1 # first\r\n", "10.0.0.1/32"},
		{"nameserver fe80::1%eth0", "fe80::1/128"},
		{"nameserver ::ffff:10.0.0.1", "10.0.0.1/32"},
		{"nameserver\nnameserver here\nnameserver 10.0.0.1", "10.0.0.1/32"},
	} {
		path := filepath.Join(t.TempDir(), "resolv.conf")
		must(t, os.WriteFile(path, []byte(row.text), 0o600))
		all, err := nameServers(path)
		var got []string
		for _, p := range all {
			got = append(got, p.String())
		}
		if err != nil || strings.Join(got, " ") != row.want {
			t.Errorf("%q: %v %v; want %s", row.text, got, err, row.want)
		}
	}
	if all, err := nameServers(filepath.Join(t.TempDir(), "none")); err != nil || len(all) != 0 {
		t.Errorf("without the file: %v %v", all, err)
	}
	if _, err := nameServers(t.TempDir()); err == nil {
		t.Error("a directory was read")
	}
}

// TestHostRoutes tests that the default route is ignored. Otherwise no subnet could be chosen.
func TestHostRoutes(t *testing.T) {
	all, err := hostRoutes()
	must(t, err)
	for _, r := range all {
		if p := r.Prefix; !p.IsValid() || p.Bits() < 2 || p.Addr().Is4In6() || p != p.Masked() {
			t.Errorf("%v", r)
		}
	}
}

// routesTo returns routes to prefixes over one link.
func routesTo(prefixes []netip.Prefix) (all []ipam.HostRoute) {
	for _, p := range prefixes {
		all = append(all, ipam.HostRoute{Prefix: p, Link: "eth9"})
	}
	return all
}

func noServers() ([]netip.Prefix, error) { return nil, nil }

// TestRoutesUnknown tests that a subnet is chosen even if the routes cannot be read, and that it avoids what is known.
func TestRoutesUnknown(t *testing.T) {
	b := newBench(t)
	known := netip.MustParsePrefix("172.16.0.0/16")
	b.handler = New(Config{Service: b.service, Log: quiet(), Host: noBridges, NameServers: noServers,
		Routes: func() ([]ipam.HostRoute, error) {
			return routesTo([]netip.Prefix{known}), errors.New("no netlink here")
		}}).Handler()
	if got := b.pool("local", "", "", nil).Pool; got != "172.17.0.0/24" {
		t.Errorf("chosen: %s", got)
	}
	b.pool("local", "10.0.0.0/24", "", nil)
	if got := b.subnets(""); !slices.Equal(got, []string{"10.0.0.0/24", "172.17.0.0/24"}) {
		t.Errorf("subnets: %v", got)
	}
}

// TestLongName tests that an endpoint's name is recorded in full, or the request is refused.
func TestLongName(t *testing.T) {
	b := newBench(t)
	p := b.pool("local", "10.0.0.0/24", "", nil).PoolID
	b.take(p, "", opts{optName: strings.Repeat("n", 255), optMAC: macText(1)})
	_, refused := b.tryTake(p, "", opts{optName: strings.Repeat("n", 256), optMAC: macText(2)})
	wantText(t, refused, "name", "256", "255")
	if refused := b.send("RequestAddress",
		api.RequestAddressRequest{PoolID: p, Options: opts{optName: "a\nb\x00\"", optMAC: macText(3)}},
		&struct{}{}); refused != "" {
		t.Errorf("an odd name: %s", refused)
	}
	b.check()
}
