package cluster

import (
	"context"
	"slices"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// putGrants puts back which host's edge may have which elastic address in its kernel, as far as this host remembers: of
// its own edge, and of those of hosts that have not done their part, of which some may never do it. So no other edge is
// granted such an address before that one has said that it has it no more. One too many is forgotten as soon as the
// edge that it is about says what it has, or its host is removed; one too few would have two hosts answer.
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

// tellsOf tells whether this host's memory counts of what a host's edge may have: each host is the authority on its
// own, once it has done its part. When all is over, nobody is on that of others.
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
