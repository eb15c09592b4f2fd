package cluster

import (
	"context"
	"slices"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// elasticState is what the mending of a record of elastic addresses goes by.
type elasticState struct {
	ID      uint64    `json:"id"` // of an address: the event of its last change
	Created time.Time `json:"created"`
}

// stateOf reads it; an account and a range have no number, and never change.
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

// knownTo tells whether a record is no newer than what is remembered.
func (s elasticState) knownTo(plan uint64) bool {
	if s.ID > 0 {
		return s.ID <= plan
	}
	return !s.Created.After(ipam.EventTime(plan))
}

// putElastic makes elastic addresses, their ranges and accounts what is remembered of them: nobody is given what was
// somebody's already. What was changed after that stays. It does so in pages, each of which may be made again.
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
