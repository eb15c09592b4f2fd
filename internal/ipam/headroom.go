package ipam

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"net/netip"
	"slices"
	"time"

	"berth/store"
)

// stockFacts is what the host's own store says of one attachment's headroom, beside the addresses.
type stockFacts struct {
	Space      string        `json:"space"`
	Network    string        `json:"network"` // its name
	CIDR       netip.Prefix  `json:"cidr"`
	Wanted     int           `json:"wanted"`
	Forget     bool          `json:"forget,omitempty"` // as in Policy
	Quarantine time.Duration `json:"quarantine,omitempty"`
}

// stock is the headroom of one attachment, as the host knows it.
type stock struct {
	stockFacts
	spares    map[netip.Addr]spare
	exhausted time.Time // when nothing was free to be claimed; zero: there was
}

// spare is an address that is claimed in the shared store as headroom, and which the host gives out while that store is out
// of reach.
type spare struct {
	Lease    uint64    `json:"lease"`
	Use      *use      `json:"use,omitempty"`     // who has it or had it last; nil: nobody had it
	Released time.Time `json:"released,omitzero"` // the end of the use; zero: it lasts
	Told     bool      `json:"told,omitempty"`    // the shared store was told of the use, and may have taken it in
}

// used tells whether somebody has the address now.
func (sp *spare) used() bool { return sp.Use != nil && sp.Released.IsZero() }

// free tells whether it may be given out. One whose use has ended may not as long as the shared store may have it as the lease of
// who had it.
func (sp *spare) free() bool { return !sp.used() && !sp.Told }

// isOf tells whether the address was last in the hands of who asks: of the same name, or MAC.
func (sp *spare) isOf(req *AddressRequest) bool {
	if sp.Use == nil {
		return false
	}
	name := rememberedName(req.Name)
	return name != "" && rememberedName(sp.Use.Name) == name || req.MAC != (MAC{}) && sp.Use.MAC == req.MAC
}

// uses are the addresses of which the shared store is to be told, in order.
func (st *stock) uses() (all []netip.Addr) {
	for addr, sp := range st.spares {
		if !sp.free() {
			all = append(all, addr)
		}
	}
	slices.SortFunc(all, netip.Addr.Compare)
	return all
}

// had is the address that req was given before; the zero one where it is no repetition, by the same rule as everywhere.
func (st *stock) had(req *AddressRequest) netip.Addr {
	for addr, sp := range st.spares {
		if sp.used() && req.MAC != (MAC{}) && sp.Use.MAC == req.MAC && (req.Name == "" || sp.Use.Name == req.Name) &&
			(!req.Preferred.IsValid() || req.Preferred == addr) && !req.Gateway {
			return addr
		}
	}
	return netip.Addr{}
}

// choose is the address that req may be given out of those that suit, in the order in which all are chosen: the one that it asks
// for, and no other; the one that it had last; the lowest that nobody had; the one released longest ago and past its
// quarantine.
func (st *stock) choose(req *AddressRequest, now time.Time, suits func(addr netip.Addr, lease uint64) bool) (netip.Addr, bool) {
	var free []netip.Addr
	for addr, sp := range st.spares {
		if sp.free() && suits(addr, sp.Lease) {
			free = append(free, addr)
		}
	}
	if req.Preferred.IsValid() {
		return req.Preferred, slices.Contains(free, req.Preferred)
	}
	rank := func(addr netip.Addr) int {
		switch sp := st.spares[addr]; {
		case !st.Forget && sp.isOf(req):
			return 0
		case sp.Use == nil:
			return 1
		case !sp.Released.Add(st.Quarantine).After(now):
			return 2
		}
		return 3
	}
	slices.SortFunc(free, func(a, b netip.Addr) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), st.spares[a].Released.Compare(st.spares[b].Released), a.Compare(b))
	})
	if len(free) == 0 || rank(free[0]) == 3 {
		return netip.Addr{}, false
	}
	return free[0], true
}

func stockKey(pool ID) []byte { return append([]byte{headroomKeys}, pool[:]...) }

func spareKey(pool ID, addr netip.Addr) []byte { return appendAddr(stockKey(pool), addr) }

// readStocks reads the headroom that the host knows of, by attachment.
func readStocks(tx store.Tx) (map[ID]*stock, error) {
	all := map[ID]*stock{}
	for rec, err := range tx.Scan(kindRange(headroomKeys)) {
		if err != nil {
			return nil, err
		}
		if err := takeStock(all, rec); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// takeStock takes in one record of the headroom, that of an attachment before those of its addresses.
func takeStock(all map[ID]*stock, rec store.Record) error {
	if len(rec.Key) < 17 {
		return fmt.Errorf("%w: the key %x names no headroom", ErrDamaged, rec.Key)
	}
	pool := ID(rec.Key[1:17])
	if len(rec.Key) == 17 {
		st := &stock{spares: map[netip.Addr]spare{}}
		all[pool] = st
		return decodeJSON("the headroom of pool "+pool.String(), rec.Value, &st.stockFacts)
	}
	addr, ok := netip.AddrFromSlice(rec.Key[17:])
	st := all[pool]
	if !ok || st == nil {
		return fmt.Errorf("%w: the key %x names no address of a headroom", ErrDamaged, rec.Key)
	}
	var sp spare
	if err := decodeJSON("the headroom "+addr.String(), rec.Value, &sp); err != nil {
		return err
	}
	if sp.Lease == 0 || sp.Use == nil && (sp.Told || !sp.Released.IsZero()) {
		return fmt.Errorf("%w: the headroom %s of pool %s contradicts itself", ErrDamaged, addr, pool)
	}
	st.spares[addr] = sp
	return nil
}

// DropHeadroom has a host forget the headroom that it knows of: its own store was put back to what it was, and the addresses may be
// in other hands since. Those that are claimed for it still it finds in the shared store.
func DropHeadroom(ctx context.Context, own store.Store) error {
	return own.Update(ctx, func(tx store.Tx) error {
		r := kindRange(headroomKeys)
		_, err := deleteWhile(tx, r, func(int, []byte) bool { return true })
		return err
	})
}

// setSpares notes what becomes of addresses of an attachment's headroom; nil: it is none any more. The caller has turn.
func (s *Shared) setSpares(ctx context.Context, pool ID, changed map[netip.Addr]*spare) error {
	notes := make([]note, 0, len(changed))
	for _, addr := range sortedAddrs(changed) {
		n := note{key: spareKey(pool, addr)}
		if sp := changed[addr]; sp != nil {
			var err error
			if n, err = noteJSON(n.key, sp); err != nil {
				return err
			}
		}
		notes = append(notes, n)
	}
	return s.keep(ctx, notes, func() {
		spares := s.stocks[pool].spares
		for addr, sp := range changed {
			if before, ok := spares[addr]; ok && !before.free() {
				s.inUse--
			}
			if sp == nil {
				delete(spares, addr)
				continue
			}
			if spares[addr] = *sp; !sp.free() {
				s.inUse++
			}
		}
	})
}

// spareAt is what the host knows of an address of its headroom.
func (s *Shared) spareAt(pool ID, addr netip.Addr) (sp spare, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st := s.stocks[pool]; st != nil {
		sp, ok = st.spares[addr]
	}
	return sp, ok
}

// stockOf is a copy of an attachment's headroom; nil where it has none.
func (s *Shared) stockOf(pool ID) *stock {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.stocks[pool]
	if st == nil {
		return nil
	}
	return &stock{stockFacts: st.stockFacts, spares: maps.Clone(st.spares)}
}

// setStock notes the facts of an attachment's headroom, where they have changed. The caller has turn.
func (s *Shared) setStock(ctx context.Context, pool ID, facts stockFacts) error {
	if st := s.stockOf(pool); st != nil && st.stockFacts == facts {
		return nil
	}
	n, err := noteJSON(stockKey(pool), &facts)
	if err != nil {
		return err
	}
	return s.keep(ctx, []note{n}, func() {
		if st := s.stocks[pool]; st != nil {
			st.stockFacts = facts
		} else {
			s.stocks[pool] = &stock{stockFacts: facts, spares: map[netip.Addr]spare{}}
		}
	})
}

// dropStock forgets an attachment's headroom.
func (s *Shared) dropStock(ctx context.Context, pool ID) error {
	s.turn.Lock()
	defer s.turn.Unlock()
	notes, then := s.withoutStock(pool)
	return s.keep(ctx, notes, then)
}

// withoutStock is what is to be written for an attachment to have no headroom, and what the copy in memory is to do then.
func (s *Shared) withoutStock(pool ID) (notes []note, then func()) {
	st := s.stockOf(pool)
	if st == nil {
		return nil, func() {}
	}
	for _, addr := range sortedAddrs(st.spares) {
		notes = append(notes, note{key: spareKey(pool, addr)})
	}
	return append(notes, note{key: stockKey(pool)}), func() {
		s.inUse -= len(st.uses())
		delete(s.stocks, pool)
	}
}

// pages cuts what is known of addresses into pages of at most n, in order.
func pages[V any](all map[netip.Addr]V, n int) iter.Seq[map[netip.Addr]V] {
	return func(yield func(map[netip.Addr]V) bool) {
		for chunk := range slices.Chunk(sortedAddrs(all), n) {
			page := make(map[netip.Addr]V, len(chunk))
			for _, addr := range chunk {
				page[addr] = all[addr]
			}
			if !yield(page) {
				return
			}
		}
	}
}

func sortedAddrs[V any](of map[netip.Addr]V) []netip.Addr {
	return slices.SortedFunc(maps.Keys(of), netip.Addr.Compare)
}
