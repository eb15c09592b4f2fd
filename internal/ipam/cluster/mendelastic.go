package cluster

import (
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
// somebody's already. What was changed after that stays.
func (m *mender) putElastic(c *ledger.Change, r *ipam.MendReport) error {
	there := map[string][]byte{}
	for _, kind := range []byte{ledger.AccountKeys, ledger.ElasticRangeKeys, ledger.ElasticKeys} {
		for rec, err := range c.Tx().Scan(ledger.KindRange(kind)) {
			if err != nil {
				return err
			}
			there[string(rec.Key)] = append([]byte(nil), rec.Value...)
		}
	}
	for _, key := range sortedNames(there) {
		k := []byte(key)
		if m.mem.elastic[key] == nil && stateOf(k, there[key]).knownTo(m.mem.head.Plan) {
			r.Removed++
			if err := c.PutElastic(k, nil); err != nil {
				return err
			}
		}
	}
	for _, key := range sortedNames(m.mem.elastic) {
		k, known := []byte(key), m.mem.elastic[key]
		if there[key] != nil && stateOf(k, there[key]).ID >= stateOf(k, known).ID {
			continue
		}
		r.Reserved++
		if err := c.PutElastic(k, known); err != nil {
			return err
		}
	}
	return nil
}
