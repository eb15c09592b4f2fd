//go:build engine

package engine

import (
	"fmt"
	"strings"
)

// mark begins the name of each container, network, image, plugin, socket and namespace of every test run.
const mark = "berth-t-"

// Each run has its own prefix of names and second byte of addresses. If an engine miscounts the endpoints of a
// network, it keeps it until a restart, with its name, bridge, subnet and driver name. A run that finds such a network
// uses other names and addresses.
var (
	prefix = mark
	octet  = firstOctet
)

// firstOctet is the octet of a run that finds nothing left behind. Its addresses are 10.213.0.0/16 and fd00:213::/32.
const firstOctet = 213

// sites is how many runs an engine can spoil before it must be restarted.
const sites = 6

// siteBeside returns the first prefix of names and byte of addresses that no network left behind has.
func siteBeside(left []string) (begin string, byte2 int, err error) {
	for i := range sites {
		begin = mark
		if i > 0 {
			begin += string(rune('a'+i)) + "-"
		}
		if !taken(begin, left) {
			return begin, firstOctet + i, nil
		}
	}
	return "", 0, fmt.Errorf("networks of %d runs are left behind, which this engine cannot remove (%s); start it "+
		"again: systemctl restart docker",
		sites, strings.Join(left, ", "))
}

// taken reports whether one of the names belongs to the run with this prefix. After the prefix comes a number or a
// word, but not a letter and a dash.
func taken(begin string, names []string) bool {
	for _, name := range names {
		rest, ours := strings.CutPrefix(name, begin)
		if ours && !(begin == mark && len(rest) > 1 && rest[1] == '-' && rest[0] >= 'b' && rest[0] < 'a'+sites) {
			return true
		}
	}
	return false
}
