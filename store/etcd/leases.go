package etcd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"berth/store"
)

// leased is a key under its own lease of etcd, which removes the key soon after its handle is gone.
type leased struct {
	key   string
	lease clientv3.LeaseID // 0: none
	mod   int64            // the revision of the last write
	kept  time.Time
}

// grant puts a key under a new lease of ttl seconds. It asks for a new value before each try, because an earlier
// request may still arrive.
func (s *Store) grant(ctx context.Context, ttl int64,
	what func(clientv3.LeaseID) (key, value string)) (l leased, err error) {
	err = s.members.ask(ctx, func(ctx context.Context, c *clientv3.Client) error {
		now := time.Now()
		g, err := c.Grant(ctx, ttl)
		if err != nil {
			return err
		}
		key, value := what(g.ID)
		p, err := c.Put(ctx, key, value, clientv3.WithLease(g.ID))
		if err == nil {
			l = leased{key: key, lease: g.ID, mod: p.Header.Revision, kept: now}
		}
		return err
	})
	return l, err
}

// keep keeps a lease alive. It returns rpctypes.ErrLeaseNotFound if the lease has ended.
func (s *Store) keep(ctx context.Context, l *leased) error {
	return s.members.ask(ctx, func(ctx context.Context, c *clientv3.Client) error {
		now := time.Now()
		_, err := c.KeepAliveOnce(ctx, l.lease)
		if err == nil {
			l.kept = now
		}
		return err
	})
}

// revoke ends a lease if etcd answers. It also ends by itself.
func (s *Store) revoke(ctx context.Context, l leased) {
	if l.lease == 0 || s.reach.isAway() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout/3)
	defer cancel()
	_ = s.members.ask(ctx, func(ctx context.Context, c *clientv3.Client) error {
		_, err := c.Revoke(ctx, l.lease)
		return err
	})
}

// presentTTL is how many seconds an announcement lasts without a keepalive.
const presentTTL = 10

// presence is what this handle announces, by name.
type presence struct {
	mu   sync.Mutex
	want map[string]*announced
}

// announced is one announced value. Its lease belongs to the pulse.
type announced struct {
	value []byte
	leased
}

// Announce implements store.Shared.
func (s *Store) Announce(name string, value []byte) {
	s.presence.mu.Lock()
	s.presence.want[name] = &announced{value: bytes.Clone(value)}
	s.presence.mu.Unlock()
	s.pulse.hurry()
}

func (p *presence) all() map[string]*announced {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.want)
}

// Present implements store.Shared.
func (s *Store) Present() map[string][]byte { return s.mirror.standing(presentPlace) }

// keepLeases keeps the handle's announcements and its marker alive.
func (s *Store) keepLeases(ctx context.Context) {
	if m := s.commit.marker(); time.Since(m.kept) > markerTTL*time.Second/3 && s.keep(ctx, &m.leased) == nil {
		s.commit.keptMarker(m)
	}
	for name, a := range s.presence.all() {
		if a.lease != 0 && time.Since(a.kept) > presentTTL*time.Second/4 &&
			errors.Is(s.keep(ctx, &a.leased), rpctypes.ErrLeaseNotFound) {
			a.lease = 0
		}
		if a.lease == 0 { // after an error the next pulse tries again
			a.leased, _ = s.grant(ctx, presentTTL, func(clientv3.LeaseID) (key, value string) {
				return s.layout.present + name, string(a.value)
			})
		}
	}
}

// leave revokes the handle's leases.
func (s *Store) leave() {
	s.revoke(context.Background(), s.commit.marker().leased)
	for _, a := range s.presence.all() {
		s.revoke(context.Background(), a.leased)
	}
}

// session is a store.Session. Its key exists as long as the session.
type session struct {
	leased
	s  *Store
	id string
}

// Hold implements store.Shared. A late request of an abandoned attempt may replace the key by that of a session that
// nobody keeps alive. Then Keep finds that this session has ended.
func (s *Store) Hold(ctx context.Context, name string) (store.Session, error) {
	if err := s.refused(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	one := &session{s: s}
	var err error
	one.leased, err = s.grant(ctx, int64(store.SessionTTL.Seconds()), func(id clientv3.LeaseID) (key, value string) {
		one.id = fmt.Sprintf("%016x", id)
		return s.layout.sessions + name, one.id
	})
	if err != nil {
		return nil, err
	}
	return one, nil
}

// ID implements store.Session.
func (one *session) ID() string { return one.id }

// Keep implements store.Session. The answer to the keepalive proves nothing, because it may come from a former leader
// that does not know it yet. So the key is then read by a quorum.
func (one *session) Keep(ctx context.Context) error {
	s := one.s
	if err := s.refused(); err != nil {
		return err
	}
	err := s.keep(ctx, &one.leased)
	if errors.Is(err, rpctypes.ErrLeaseNotFound) {
		return store.ErrEnded
	}
	if err != nil {
		return err
	}
	if err := s.verify(ctx); err != nil {
		return err
	}
	resp, err := s.members.do(ctx, get(one.key))
	if err != nil {
		return err
	}
	if kvs := kvsOf(resp, 0); len(kvs) != 1 || string(kvs[0].Value) != one.id {
		return store.ErrEnded
	}
	return nil
}

// End implements store.Session.
func (one *session) End(ctx context.Context) {
	if one.s.refused() == nil {
		one.s.revoke(ctx, one.leased)
	}
}

// Held implements store.Shared.
func (s *Store) Held() map[string]string {
	all := map[string]string{}
	for name, id := range s.mirror.standing(sessionPlace) {
		all[name] = string(id)
	}
	return all
}
