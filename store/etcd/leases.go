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

// leased is a key under a lease of etcd of its own, so that a handle that dies leaves nothing for ever.
type leased struct {
	key   string
	lease clientv3.LeaseID // 0: there is none
	mod   int64            // the revision that wrote the key last
	kept  time.Time
}

// grant puts a key under a new lease of ttl seconds. It asks by each try what to put: what one of them has sent in vain
// may come late.
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

// keep keeps a lease alive. Where it is over, that is rpctypes.ErrLeaseNotFound.
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

// revoke ends a lease where etcd answers. It ends by itself, too.
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

// presentTTL is how many seconds somebody stays announced without a sign of life.
const presentTTL = 10

// presence is what this handle announces, by name.
type presence struct {
	mu   sync.Mutex
	want map[string]*announced
}

// announced is one value. Its lease belongs to the pulse.
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

// keepLeases keeps what this handle announces, and its marker, alive.
func (s *Store) keepLeases(ctx context.Context) {
	if m := s.commit.marker(); time.Since(m.kept) > markerTTL*time.Second/3 && s.keep(ctx, &m.leased) == nil {
		s.commit.keptMarker(m)
	}
	for name, a := range s.presence.all() {
		if a.lease != 0 && time.Since(a.kept) > presentTTL*time.Second/4 &&
			errors.Is(s.keep(ctx, &a.leased), rpctypes.ErrLeaseNotFound) {
			a.lease = 0
		}
		if a.lease == 0 { // on an error the next beat tries again
			a.leased, _ = s.grant(ctx, presentTTL, func(clientv3.LeaseID) (key, value string) {
				return s.layout.present + name, string(a.value)
			})
		}
	}
}

// leave takes back what stands under the handle's leases.
func (s *Store) leave() {
	s.revoke(context.Background(), s.commit.marker().leased)
	for _, a := range s.presence.all() {
		s.revoke(context.Background(), a.leased)
	}
}

// session is a key that stands while it has the session's id.
type session struct {
	leased
	s  *Store
	id string
}

// Hold implements store.Shared. A request of an attempt that was given up may come late and put the id of a session
// there that nobody keeps: then Keep finds that this one has ended.
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

// Keep implements store.Session. An answer to the keepalive alone proves nothing: one who was etcd's leader, and does
// not know yet that he is not, may have given it. The key is read afterwards, by what the members agree on.
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
