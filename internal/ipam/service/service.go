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
	Host      string           // this host's name, put in leases and events
	Now       func() time.Time // default: time.Now
	Bases     []ipam.Base      // where pools come from that name no subnet; a family without any: see DefaultBases
	Memories  int              // released addresses remembered per subnet; default: ledger.DefaultMemories
	Retention ipam.Retention

	// Forgets says that the store does: the state is rebuilt from what runs (BO-4). Ids of attachments are then worked
	// out from what was asked for, and a second reservation of an address is refused whoever asks (BO-5).
	Forgets bool

	// Member makes the host one of several that share the store, which is a store.Shared then. nil: the store is the
	// host's own.
	Member *ipam.Member

	// NoElastic turns elastic addresses off (CS-11).
	NoElastic bool

	// Moment is the time since the host's start, on a clock that goes on while it sleeps, that nobody sets, and that its
	// edge reads, too. Default: one of this process alone.
	Moment func() time.Duration

	// AskLAN speaks on the LANs of this host; nil: nothing can.
	AskLAN ipam.AskLAN

	// Upgrading opens a state of an older format; the zero value refuses one.
	Upgrading ledger.Upgrading

	// Known is what a witness of this host's engine can tell.
	Known ipam.Known

	// Mends opens a shared store that was put back to an earlier state, to be mended: the host does not take part.
	Mends bool

	// Copying opens a store for CopySpaces, also one that is refused else because a copy was cut off.
	Copying bool
}

// Service allocates addresses out of one store, or answers for all that a host's records are in: the rooms, joined. Its
// methods may be called from many goroutines at once.
type Service struct {
	allocator.Allocator
	edit.Editor
	view.Views
	stores.Keeper
	elastic.Room
	names.Book
	lan.Lessee

	Ledger *ledger.Ledger // the host's own, for those who work on the store as a whole
}

// Over joins the rooms over the homes of a host's records. What changes the plan goes to the host's own, and so does what
// the engine asks for.
func Over(h ledger.Homes) *Service {
	return &Service{allocator.Of(h), edit.Of(h.Own), view.Of(h), stores.Of(h), elastic.Of(h), names.Of(h), lan.Of(h.Own),
		h.Own}
}

// Open reads all records into the index, finishes what a crash cut off, and returns a Service that is ready to answer.
// A record that cannot be read is an error wrapping ErrDamaged or store.ErrCorrupt.
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

// open reads all records, and takes part.
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

// settle makes what every store has, and ends what a crash left half ended.
func settle(ctx context.Context, s *ledger.Ledger) error {
	if s.BeingMended() != nil {
		return defaultBases(ctx, s) // what is half ended is ended afterwards, by Run
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

// Spaces are those that the store always has. The local one is each host's own, and never in a shared store.
func Spaces(s *ledger.Ledger) []string {
	if s.Member() != nil {
		return []string{ipam.GlobalSpace}
	}
	return []string{ipam.LocalSpace, ipam.GlobalSpace}
}

// settleAttachments ends those whose end was cut off, and those that were to end with an heir which is gone.
func settleAttachments(ctx context.Context, s *ledger.Ledger) error {
	if err := edit.Finish(ctx, s); err != nil {
		return err
	}
	var all map[ipam.ID]*ipam.Attachment
	s.Read(func(ix *ledger.Index) { all = maps.Collect(ix.Attachments()) })
	for id, a := range all {
		heir := a.Heir
		if _, lives := all[heir]; heir == (ipam.ID{}) || lives {
			continue
		}
		if err := allocator.ReleaseInherited(ctx, s, heir, []ipam.ID{id}); err != nil {
			return err
		}
	}
	return nil
}

// defaultBases gives each family that was told no bases its own.
func defaultBases(ctx context.Context, s *ledger.Ledger) error {
	has := map[bool]bool{} // by whether it is IPv6
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

// ula is the store's own /48 out of fd00::/8, drawn once (RFC 4193, 3.2).
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
