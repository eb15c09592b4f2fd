package etcd

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// presentTTL is how many seconds somebody stays announced without a sign of life.
const presentTTL = 10

// presence is what this handle announces, and the lease of etcd that it hangs on.
type presence struct {
	mu    sync.Mutex
	want  map[string][]byte
	fresh bool // want was put as it is

	// What follows belongs to the pulse.
	lease  clientv3.LeaseID
	kept   time.Time
	marked time.Time // when the marker's lease was kept
}

// Announce implements store.Shared.
func (s *Store) Announce(name string, value []byte) {
	p := &s.presence
	p.mu.Lock()
	if p.want == nil {
		p.want = map[string][]byte{}
	}
	p.want[name] = bytes.Clone(value)
	p.fresh = false
	p.mu.Unlock()
	s.pulse.hurry()
}

// Present implements store.Shared.
func (s *Store) Present() map[string][]byte {
	return s.mirror.standing(presentPlace)
}

// keepLeases keeps what this handle announces, and its marker, alive.
func (s *Store) keepLeases(ctx context.Context) {
	p := &s.presence
	now := time.Now()
	if m := s.commit.marker(); now.Sub(p.marked) > markerTTL*time.Second/3 && m.lease != 0 {
		if s.keepAlive(ctx, clientv3.LeaseID(m.lease)) == nil {
			p.marked = now
		}
	}
	p.mu.Lock()
	want, fresh := maps.Clone(p.want), p.fresh
	p.fresh = true
	p.mu.Unlock()
	if len(want) == 0 {
		return
	}
	if p.lease != 0 && now.Sub(p.kept) > presentTTL*time.Second/4 {
		switch err := s.keepAlive(ctx, p.lease); {
		case errors.Is(err, rpctypes.ErrLeaseNotFound):
			p.lease = 0
		case err == nil:
			p.kept = now
		}
	}
	if p.lease != 0 && fresh {
		return
	}
	if err := s.putPresent(ctx, want); err != nil {
		p.mu.Lock()
		p.fresh = false
		p.mu.Unlock()
	}
}

func (s *Store) keepAlive(ctx context.Context, id clientv3.LeaseID) error {
	return s.members.ask(ctx, func(ctx context.Context, c *clientv3.Client) error {
		_, err := c.KeepAliveOnce(ctx, id)
		return err
	})
}

func (s *Store) putPresent(ctx context.Context, want map[string][]byte) error {
	p := &s.presence
	return s.members.ask(ctx, func(ctx context.Context, c *clientv3.Client) error {
		if p.lease == 0 {
			l, err := c.Grant(ctx, presentTTL)
			if err != nil {
				return err
			}
			p.lease, p.kept = l.ID, time.Now()
		}
		for name, value := range want {
			if _, err := c.Put(ctx, s.layout.present+name, string(value), clientv3.WithLease(p.lease)); err != nil {
				if errors.Is(err, rpctypes.ErrLeaseNotFound) {
					p.lease = 0
				}
				return err
			}
		}
		return nil
	})
}

// leave takes back what stands under the handle's leases. They end by themselves, too.
func (s *Store) leave() {
	if s.reach.away() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.cfg.Timeout/3)
	defer cancel()
	for _, id := range []clientv3.LeaseID{s.presence.lease, clientv3.LeaseID(s.commit.marker().lease)} {
		if id == 0 {
			continue
		}
		_ = s.members.ask(ctx, func(ctx context.Context, c *clientv3.Client) error {
			_, err := c.Revoke(ctx, id)
			return err
		})
	}
}
