package cluster

import (
	"context"
	"slices"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// elasticState is what a record of elastic addresses is compared by.
type elasticState struct {
	ID      uint64    `json:"id"` // for an address: the event of its last change
	Created time.Time `json:"created"`
}

// stateOf reads it from a record. An account or a range has no number and never changes.
func stateOf(key, raw []byte) (s elasticState) {
	if key[0] == ledger.ElasticKeys {
		if e, ok := ledger.Decoded[ipam.Elastic](raw); ok {
			s.ID = e.Value.ID
		}
		return s
	}
	if d, ok := ledger.Decoded[struct {
		Created time.Time `json:"created"`
	}](raw); ok {
		s.Created = d.Value.Created
	}
	return s
}

// knownTo reports whether a record is no newer than what is remembered.
func (s elasticState) knownTo(plan uint64) bool {
	if s.ID > 0 {
		return s.ID <= plan
	}
	return !s.Created.After(ipam.EventTime(plan))
}

// putElastic restores elastic addresses, ranges and accounts as remembered, so that nobody gets an address that another
// account has. It keeps later changes. It works in pages that may be repeated.
func (m *mender) putElastic(ctx context.Context) error {
	keys := sortedNames(m.mem.elastic)
	err := m.s.Ledger.Look(ctx, func(c *ledger.Change) error {
		for _, kind := range []byte{ledger.AccountKeys, ledger.ElasticRangeKeys, ledger.ElasticKeys} {
			for rec, err := range c.Tx().Scan(ledger.KindRange(kind)) {
				if err != nil {
					return err
				}
				if m.mem.elastic[string(rec.Key)] == nil {
					keys = append(keys, string(rec.Key))
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for page := range slices.Chunk(keys, m.s.Ledger.Page()) {
		err := m.doPlan(ctx, func(c *ledger.Change, r *ipam.MendReport) error {
			for _, key := range page {
				if err := m.fixElastic(c, r, key); err != nil {
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

func (m *mender) fixElastic(c *ledger.Change, r *ipam.MendReport, key string) error {
	k, known := []byte(key), m.mem.elastic[key]
	there, err := c.Tx().Get(k)
	if err != nil {
		return err
	}
	switch {
	case known == nil && (there == nil || !stateOf(k, there).knownTo(m.mem.head.Plan)):
		return nil
	case known == nil:
		r.Removed++
	case there != nil && stateOf(k, there).ID >= stateOf(k, known).ID:
		return nil
	default:
		r.Reserved++
	}
	return c.PutElastic(k, known)
}
