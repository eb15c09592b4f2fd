package driver

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"strings"

	"github.com/vishvananda/netlink"
	"go4.org/netipx"
)

// resolvConf lists the host's name servers; in a managed plugin the engine mounts the host's own there.
const resolvConf = "/etc/resolv.conf"

// HostPrefixes returns what the engine checks a chosen subnet against: the routes of this network namespace but the
// default ones, and the addresses of the name servers.
func HostPrefixes() ([]netip.Prefix, error) {
	all, err := nameServers(resolvConf)
	routes, routesErr := netlink.RouteList(nil, netlink.FAMILY_ALL)
	if routesErr != nil {
		err = errors.Join(err, fmt.Errorf("listing the host's routes: %w", routesErr))
	}
	for _, route := range routes {
		if route.Dst == nil {
			continue
		}
		if p, ok := netipx.FromStdIPNet(route.Dst); ok && p.Bits() > 0 {
			all = append(all, p)
		}
	}
	return all, err
}

// nameServers reads the addresses of a resolv.conf; a missing file has none.
func nameServers(path string) ([]netip.Prefix, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var all []netip.Prefix
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 2 || fields[0] != "nameserver" {
			continue
		}
		if addr, err := netip.ParseAddr(fields[1]); err == nil {
			addr = addr.WithZone("").Unmap()
			all = append(all, netip.PrefixFrom(addr, addr.BitLen()))
		}
	}
	return all, lines.Err()
}
