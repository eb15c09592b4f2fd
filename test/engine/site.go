//go:build engine

package engine

import (
	"fmt"
	"strings"
)

// mark begins the name of each container, network, image, plugin, socket and namespace of the tests, of whichever run.
const mark = "berth-t-"

// What is a run's own: how its names begin, and the second byte of its addresses. An engine that miscounts the
// endpoints of a network keeps it until it is restarted, with its name, its bridge, its subnet and the name of its
// driver; a run that finds such a one has names and addresses beside it.
var (
	prefix = mark
	octet  = firstOctet
)

// firstOctet is that of a run that finds nothing left behind: 10.213.0.0/16 and fd00:213::/32 are its addresses.
const firstOctet = 213

// sites is how many runs an engine can spoil before it must be restarted.
const sites = 6

// siteBeside is the first beginning of names, and the byte of addresses, that no network has which was left behind.
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

// taken reports whether one of the names belongs to the run whose names begin so: a number follows, or the word that is
// not a letter and a dash.
func taken(begin string, names []string) bool {
	for _, name := range names {
		rest, ours := strings.CutPrefix(name, begin)
		if ours && !(begin == mark && len(rest) > 1 && rest[1] == '-' && rest[0] >= 'b' && rest[0] < 'a'+sites) {
			return true
		}
	}
	return false
}
