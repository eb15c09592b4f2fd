package cluster

import (
	"context"
	"slices"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// putGrants restores which host's edge may have which elastic address in its kernel, as far as this host remembers. It
// does so for its own edge. It also does so for the edges of hosts that have not done their part, because some may
// never do it. Another edge then gets such an address only after the first one reports that it no longer has it. A
// grant too many disappears when its edge reports its addresses, or when its host is removed. With a grant too few, two
// hosts would answer for one address.
func (m *mender) putGrants(ctx context.Context) error {
	for page := range slices.Chunk(sortedNames(m.mem.granted), m.s.Ledger.Page()) {
		err := m.do(ctx, func(c *ledger.Change, _ *ipam.MendReport) error {
			for _, key := range page {
				if err := m.fixGrant(c, key); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (m *mender) fixGrant(c *ledger.Change, key string) error {
	known, ok := ledger.Decoded[ipam.Applied](m.mem.granted[key])
	if !ok || !m.tellsOf(markOf(c.Index()), known.Value.Host) {
		return nil
	}
	raw, err := c.Tx().Get([]byte(key))
	if err != nil {
		return err
	}
	there, is := ledger.Decoded[ipam.Applied](raw)
	if is && there.Value.InForce && there.Value.Grant >= known.Value.Grant {
		return nil
	}
	return c.PutElastic([]byte(key), m.mem.granted[key])
}

// tellsOf reports whether this host may restore the grants of a host's edge. Each host decides for its own edge once it
// has done its part. After the mending, no host decides for others.
func (m *mender) tellsOf(mark *mendMark, host string) bool {
	if host == m.s.Ledger.Host() {
		return true
	}
	if m.opt.Accept || !mark.open() {
		return false
	}
	h := mark.Hosts[host]
	return h == nil || h.State == mendWaited || h.State == mendGone
}
