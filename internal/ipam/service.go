// Package ipam is the heart of Berth: it decides who has which address. It promises that an address is in at most one
// holder's hands, that what it has answered is durable before it answers, that a release succeeds whatever it finds, and
// that an owner gets the address back that it had. Refusals are sentences for a person, of the kinds in errors.go.
//
// A request comes in as a typed struct and runs as one change inside a store transaction: it reads its attachment and
// subnet, asks the index in memory for a candidate, verifies the candidate's record in the transaction, writes the lease
// and its event, and is answered after the commit. Records are the truth and the index is advice: it is built by one
// scan in Open, and moved on by each change.
package ipam

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"berth/store"
)

// Config is what a Service needs. Store and Host are mandatory.
type Config struct {
	Store     store.Store
	Host      string           // this host's name, put in leases and events
	Now       func() time.Time // default: time.Now
	Bases     []Base           // where pools come from that name no subnet; a family without any: see DefaultBases
	Memories  int              // released addresses remembered per subnet; default 4,096
	Retention Retention

	// Forgets says that the store does: the state is rebuilt from what runs (BO-4). Ids of attachments are then worked out from
	// what was asked for, and a second reservation of an address is refused whoever asks (BO-5).
	Forgets bool

	// Member makes the host one of several that share the store, which is a store.Shared then. nil: the store is the host's own.
	Member *Member

	// Copying opens a store for CopySpaces, also one that is refused else because a copy was cut off.
	Copying bool
}

// Base is a prefix out of which subnets of one size are carved.
type Base struct {
	Prefix netip.Prefix
	Bits   int // length of the subnets' prefix
}

func (b Base) String() string { return fmt.Sprintf("%s in /%d", b.Prefix, b.Bits) }

// DefaultBases are the private prefixes of RFC 1918 in /24s. For IPv6 the default is a ULA /48 of the store's own in /64s
// (RFC 4193), drawn by Open.
func DefaultBases() []Base {
	return []Base{
		{netip.MustParsePrefix("172.16.0.0/12"), 24},
		{netip.MustParsePrefix("192.168.0.0/16"), 24},
		{netip.MustParsePrefix("10.0.0.0/8"), 24},
	}
}

// DefaultMemories is how many released addresses a subnet remembers the holders of.
const DefaultMemories = 4096

// Service allocates addresses out of one store. Its methods may be called from many goroutines at once.
type Service struct {
	store    store.Store
	host     string
	now      func() time.Time
	bases    []Base
	memories int
	retain   Retention
	forgets  bool
	member   *Member
	page     int // how many leases, or other records, one transaction ends at most: an attachment may have millions

	mu     sync.Mutex // guards ix
	ix     *index
	joined bool // the host takes part in the cluster

	begun uint64 // id of the last event when it was opened

	changes sync.Pool // of *change

	trim chan struct{} // wakes Run when there are too many events

	imports importing
}

// Open reads all records into the index, finishes what a crash cut off, and returns a Service that is ready to answer.
// A record that cannot be read is an error wrapping ErrDamaged or store.ErrCorrupt.
func Open(ctx context.Context, cfg Config) (*Service, error) {
	s := &Service{
		store: cfg.Store, host: cfg.Host, now: cfg.Now, bases: cfg.Bases,
		memories: cfg.Memories, retain: cfg.Retention.withDefaults(), forgets: cfg.Forgets,
		trim: make(chan struct{}, 1), member: cfg.Member, page: pageSize,
	}
	if s.member != nil {
		s.page = sharedPageSize
	}
	s.changes.New = s.newChange
	if s.now == nil {
		s.now = time.Now
	}
	if s.memories == 0 {
		s.memories = DefaultMemories
	}
	if err := s.upgrade(ctx); err != nil {
		return nil, err
	}
	if err := s.load(ctx); err != nil {
		return nil, err
	}
	if s.member == nil && !cfg.Copying {
		if err := s.refuseCopied(ctx); err != nil {
			return nil, err
		}
	}
	if err := s.join(ctx); err != nil {
		return nil, err
	}
	if err := s.settle(ctx); err != nil {
		return nil, err
	}
	s.begun = s.eventsUpTo()
	return s, nil
}

// settle makes what every store has, and ends what a crash left half ended.
func (s *Service) settle(ctx context.Context) error {
	for _, name := range s.spaces() {
		if err := s.update(ctx, func(c *change) error { return c.ensureSpace(name) }); err != nil {
			return err
		}
	}
	if err := s.defaultBases(ctx); err != nil {
		return err
	}
	if err := s.settleAttachments(ctx); err != nil {
		return err
	}
	if s.member != nil {
		return nil // another host may be writing one at this moment; the next import sweeps
	}
	return s.sweepJournal(ctx, new(pace))
}

// spaces are those that the store always has. The local one is each host's own, and never in a shared store.
func (s *Service) spaces() []string {
	if s.member != nil {
		return []string{GlobalSpace}
	}
	return []string{LocalSpace, GlobalSpace}
}

// settleAttachments ends those whose end was cut off, and those that were to end with an heir which is gone.
func (s *Service) settleAttachments(ctx context.Context) error {
	if err := s.finish(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	all := maps.Clone(s.ix.attachments)
	s.mu.Unlock()
	for id, a := range all {
		heir := a.value.Heir
		if _, lives := all[heir]; heir == (ID{}) || lives {
			continue
		}
		if err := s.releaseInherited(ctx, heir, []ID{id}); err != nil {
			return err
		}
	}
	return nil
}

// defaultBases gives each family that was told no bases its own.
func (s *Service) defaultBases(ctx context.Context) error {
	has := map[bool]bool{} // by whether it is IPv6
	for _, base := range s.bases {
		has[base.Prefix.Addr().Is6()] = true
	}
	if !has[false] {
		s.bases = append(slices.Clip(s.bases), DefaultBases()...)
	}
	if has[true] {
		return nil
	}
	ula, err := s.ula(ctx)
	s.bases = append(slices.Clip(s.bases), Base{ula, 64})
	return err
}

// ula is the store's own /48 out of fd00::/8, drawn once (RFC 4193, 3.2).
func (s *Service) ula(ctx context.Context) (p netip.Prefix, err error) {
	key := append([]byte{settingKeys}, "ula"...)
	err = s.store.Update(ctx, func(tx store.Tx) error {
		raw, err := tx.Get(key)
		if err != nil {
			return err
		}
		if raw == nil {
			var drawn [16]byte
			drawn[0] = 0xfd
			rand.Read(drawn[1:6])
			p = netip.PrefixFrom(netip.AddrFrom16(drawn), 48)
			return tx.Put(key, []byte(p.String()))
		}
		p, err = netip.ParsePrefix(string(raw))
		return err
	})
	if err != nil {
		return p, fmt.Errorf("the store's IPv6 prefix: %w", err)
	}
	return p, nil
}

// Writable tells why the store takes no writes at present; nil where it does.
func (s *Service) Writable(ctx context.Context) error {
	return s.store.Update(ctx, func(store.Tx) error { return nil })
}
