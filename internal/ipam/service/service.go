package service

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"berth/internal/allocator"
	"berth/internal/ipam"
	"berth/internal/ipam/edit"
	"berth/internal/ipam/elastic"
	"berth/internal/ipam/lan"
	"berth/internal/ipam/ledger"
	"berth/internal/ipam/names"
	"berth/internal/ipam/stores"
	"berth/internal/ipam/view"
	"berth/store"
)

// Config is what a Service needs. Store and Host are mandatory.
type Config struct {
	Store     store.Store
	Host      string           // this host's name, for leases and events
	Now       func() time.Time // default: time.Now
	Bases     []ipam.Base      // the source of pools without a subnet; a family without any uses DefaultBases
	Memories  int              // released addresses remembered per subnet; default: ledger.DefaultMemories
	Retention ipam.Retention

	// Forgets means that the store does not survive a restart. The state is then rebuilt from the running containers.
	// Ids of attachments are derived from their requests. A second lease of an address is refused, whoever
	// requests it.
	Forgets bool

	// Member makes the host a member of a cluster, and Store must be a store.Shared. nil: the store is the host's own.
	Member *ipam.Member

	// NoElastic turns elastic addresses off.
	NoElastic bool

	// Moment returns the time since the host's start, on a clock that runs during sleep and that nobody can set. The
	// host's edge reads the same clock. Default: a clock of this process.
	Moment func() time.Duration

	// AskLAN sends requests to the LANs of this host; nil: none can be sent.
	AskLAN ipam.AskLAN

	// Upgrading opens a state of an older format; the zero value refuses one.
	Upgrading ledger.Upgrading

	// Known is what the witness of this host's engine can answer.
	Known ipam.Known

	// Mends opens a shared store that went back to an earlier state, in order to mend it. The host does not join the
	// cluster.
	Mends bool

	// Copying opens a store for CopySpaces, even one that Open otherwise refuses because a copy was interrupted.
	Copying bool
}

// Service allocates addresses from one store, or from all stores that hold a host's records. It joins the types of the
// packages. Its methods may be called concurrently.
type Service struct {
	allocator.Allocator
	edit.Editor
	view.Views
	stores.Stores
	elastic.Addresses
	names.Source
	lan.Renewer

	Ledger *ledger.Ledger // the host's own, for work on the store as a whole
}

// Over joins the packages over the stores of a host's records. Changes of the plan and the engine's requests use the
// host's own store.
func Over(h ledger.Homes) *Service {
	return &Service{allocator.Of(h), edit.Of(h.Own), view.Of(h), stores.Of(h), elastic.Of(h), names.Of(h), lan.Of(h.Own),
		h.Own}
}

// Open reads all records into the index, finishes what a crash interrupted, and returns a ready Service. If a record
// cannot be read, the error wraps ErrDamaged or store.ErrCorrupt.
func Open(ctx context.Context, cfg Config) (*Service, error) {
	l := ledger.New(ledger.Config{
		Store: cfg.Store, Host: cfg.Host, Now: cfg.Now, Bases: cfg.Bases, Memories: cfg.Memories,
		Retention: cfg.Retention,
		Forgets:   cfg.Forgets, Member: cfg.Member, Known: cfg.Known, Mends: cfg.Mends,
		Upgrading: cfg.Upgrading, NoElastic: cfg.NoElastic, Moment: cfg.Moment, AskLAN: lan.Sharing(cfg.AskLAN),
	})
	if err := open(ctx, l, cfg.Copying); err != nil {
		return nil, err
	}
	return Over(ledger.Alone(l)), nil
}

// open reads all records and joins the cluster.
func open(ctx context.Context, l *ledger.Ledger, copying bool) error {
	if err := l.Load(ctx); err != nil {
		return err
	}
	if l.Member() == nil && !copying {
		if err := stores.RefuseCopied(ctx, l); err != nil {
			return err
		}
	}
	if l.Mends() {
		return nil
	}
	if err := l.Join(ctx); err != nil {
		return err
	}
	if err := settle(ctx, l); err != nil {
		return err
	}
	behind, err := view.LastMark(ctx, l)
	if err != nil {
		return err
	}
	l.Begin(behind)
	return nil
}

// settle creates what every store has, and finishes what a crash interrupted.
func settle(ctx context.Context, s *ledger.Ledger) error {
	if s.BeingMended() != nil {
		return defaultBases(ctx, s) // Run finishes interrupted work after the store is mended
	}
	for _, name := range Spaces(s) {
		if err := s.Update(ctx, func(c *ledger.Change) error { return c.EnsureSpace(name) }); err != nil {
			return err
		}
	}
	if err := defaultBases(ctx, s); err != nil {
		return err
	}
	return settleAttachments(ctx, s)
}

// Spaces returns the spaces that every store has. The local space is each host's own and never in a shared store.
func Spaces(s *ledger.Ledger) []string {
	if s.Member() != nil {
		return []string{ipam.GlobalSpace}
	}
	return []string{ipam.LocalSpace, ipam.GlobalSpace}
}

// settleAttachments ends attachments whose end was interrupted, and those whose successor is gone.
func settleAttachments(ctx context.Context, s *ledger.Ledger) error {
	if err := edit.Finish(ctx, s); err != nil {
		return err
	}
	var all map[ipam.ID]*ipam.Attachment
	s.Read(func(ix *ledger.Index) { all = maps.Collect(ix.Attachments()) })
	for id, a := range all {
		next := a.Successor
		if _, lives := all[next]; next == (ipam.ID{}) || lives {
			continue
		}
		if err := allocator.ReleasePredecessors(ctx, s, next, []ipam.ID{id}); err != nil {
			return err
		}
	}
	return nil
}

// defaultBases gives each family without configured bases its default.
func defaultBases(ctx context.Context, s *ledger.Ledger) error {
	has := map[bool]bool{} // by IPv6
	for _, base := range s.Bases() {
		has[base.Prefix.Addr().Is6()] = true
	}
	if !has[false] {
		s.SetBases(append(slices.Clip(s.Bases()), ipam.DefaultBases()...))
	}
	if has[true] {
		return nil
	}
	ula, err := ula(ctx, s)
	s.SetBases(append(slices.Clip(s.Bases()), ipam.Base{Prefix: ula, Bits: 64}))
	return err
}

// ula returns the store's own /48 of fd00::/8. It is drawn at random once (RFC 4193, 3.2).
func ula(ctx context.Context, s *ledger.Ledger) (p netip.Prefix, err error) {
	key := append([]byte{ledger.SettingKeys}, "ula"...)
	err = s.Store().Update(ctx, func(tx store.Tx) error {
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
