package etcd

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"berth/store"
)

// session is a key under a lease of etcd. It stands while the key is there and has its id.
type session struct {
	s     *Store
	key   string
	id    string
	lease clientv3.LeaseID
}

// Hold implements store.Shared. A request of an attempt that was given up may come late and put the id of a session
// there that nobody keeps: then Keep finds that this one has ended.
func (s *Store) Hold(ctx context.Context, name string) (store.Session, error) {
	if err := s.refused(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	one := &session{s: s, key: s.layout.sessions + name}
	err := s.members.ask(ctx, func(ctx context.Context, c *clientv3.Client) error {
		l, err := c.Grant(ctx, int64(store.SessionTTL.Seconds()))
		if err != nil {
			return err
		}
		one.lease, one.id = l.ID, fmt.Sprintf("%016x", l.ID)
		_, err = c.Put(ctx, one.key, one.id, clientv3.WithLease(l.ID))
		return err
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
	err := s.keepAlive(ctx, one.lease)
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
	if one.s.reach.away() || one.s.refused() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, one.s.cfg.Timeout/3)
	defer cancel()
	_ = one.s.members.ask(ctx, func(ctx context.Context, c *clientv3.Client) error {
		_, err := c.Revoke(ctx, one.lease)
		return err
	})
}

// Held implements store.Shared.
func (s *Store) Held() map[string]string {
	all := map[string]string{}
	for name, id := range s.mirror.standing(sessionPlace) {
		all[name] = string(id)
	}
	return all
}
