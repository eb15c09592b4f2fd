package etcd

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"berth/store"
)

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
