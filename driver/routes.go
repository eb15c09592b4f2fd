package driver

import (
	"bufio"
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"strings"

	"berth/internal/ipam"
	"berth/internal/routes"
)

// resolvConf lists the host's name servers. In a managed plugin the engine mounts the host's file there.
const resolvConf = "/etc/resolv.conf"

// hostRoutes returns the routes of this network namespace without the default ones.
func hostRoutes() ([]ipam.HostRoute, error) {
	all, err := routes.List()
	found := make([]ipam.HostRoute, 0, len(all))
	for _, r := range all {
		found = append(found, r.HostRoute)
	}
	return found, err
}

// nameServers reads the addresses of a resolv.conf. A missing file has none.
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
