package etcd

import (
	"bytes"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// layout has the names of all keys under the prefix, by their beginning, which is called their place:
//
//	meta          what the store is, in JSON (meta)
//	d/KEY         a record: its value, sealed
//	b/KEY         several records, of which that of KEY was the first (bundle)
//	last          put by each transaction that changes records: its ModRevision is that of the last change
//	gone          put by each transaction that deletes records, because a deletion leaves no trace in a range
//	gate          empty: open; otherwise the large transaction that is being applied
//	s/SESSION/N   writes of a large transaction that are not applied yet
//	t/SESSION     the number of a handle's last transaction (marker)
//	p/NAME        what NAME announces
//	h/NAME        the id of the session NAME, which is that of its lease
//	c/HOST        the number of transactions that have changed records, by the id of their host (trace)
type layout struct {
	prefix, meta, data, bundles, last, gone, gate, staged, marker, present, sessions, counts string
}

const (
	metaPlace    = "meta"
	dataPlace    = "d/"
	bundlePlace  = "b/"
	lastPlace    = "last"
	gonePlace    = "gone"
	gatePlace    = "gate"
	stagedPlace  = "s/"
	markerPlace  = "t/"
	presentPlace = "p/"
	sessionPlace = "h/"
	countPlace   = "c/"
)

func newLayout(prefix string) layout {
	return layout{
		prefix: prefix, meta: prefix + metaPlace, data: prefix + dataPlace, bundles: prefix + bundlePlace,
		last: prefix + lastPlace, gone: prefix + gonePlace, gate: prefix + gatePlace, staged: prefix + stagedPlace,
		marker: prefix + markerPlace, present: prefix + presentPlace, sessions: prefix + sessionPlace,
		counts: prefix + countPlace,
	}
}

// split returns the place of a key, and its name there.
func (l *layout) split(key []byte) (place string, name []byte) {
	rest := key[len(l.prefix):]
	slash := bytes.IndexByte(rest, '/') + 1
	if slash == 0 {
		slash = len(rest)
	}
	return string(rest[:slash]), rest[slash:]
}

// passing reports whether handles leave keys of a place besides the store's own.
func passing(place string) bool {
	switch place {
	case lastPlace, gonePlace, gatePlace, stagedPlace, markerPlace, presentPlace, sessionPlace, countPlace:
		return true
	}
	return false
}

// end returns the first key after those that begin with prefix.
func end(prefix string) string { return clientv3.GetPrefixRangeEnd(prefix) }

// meta is the value of the key meta.
type meta struct {
	Program string `json:"program"` // "berth"
	Version int    `json:"version"` // of the layout
	Cluster string `json:"cluster"` // 32 hexadecimal digits
	Created string `json:"created"` // RFC 3339
}

// format is the version of the layout that this package writes, and the newest that it reads.
const format = 1

func (m meta) check(where string) error {
	switch {
	case m.Program != "berth" || m.Cluster == "" || m.Version < 1:
		return fmt.Errorf("%w: %s holds data that is not from Berth: choose another prefix (--etcd-prefix)",
			errForeign, where)
	case m.Version > format:
		return fmt.Errorf("%w: %s was written by a newer Berth (format %d; the Berth on this host reads up to %d): "+
			"update Berth on this host", errForeign, where, m.Version, format)
	}
	return nil
}
