package ledger

import (
	"context"
	"sync"

	"berth/internal/ipam"
)

// clientLocks has a lock for each client of a DHCP server. Requests for the client's lease share the lock; a release
// has it alone.
type clientLocks struct {
	mu  sync.Mutex
	all map[clientKey]*clientLock
}

// clientKey is the identity by which a DHCP server knows a client: its identifier, or else its MAC.
type clientKey struct {
	id  string
	mac ipam.MAC
}

type clientLock struct {
	asking int           // requests that share the lock
	alone  bool          // a release has the lock
	freed  chan struct{} // closed when a user unlocks, and then replaced
	users  int           // users that have the lock or wait for it
}

// ShareClient waits until nobody releases the client's lease, and prevents that until end is called.
func (s *Ledger) ShareClient(ctx context.Context, c ipam.LANClient) (end func(), err error) {
	return s.clients.lock(ctx, c, false)
}

// OwnClient waits until no request uses the client, and makes others wait until end is called.
func (s *Ledger) OwnClient(ctx context.Context, c ipam.LANClient) (end func(), err error) {
	return s.clients.lock(ctx, c, true)
}

func (cl *clientLocks) lock(ctx context.Context, c ipam.LANClient, alone bool) (end func(), err error) {
	key := clientKey{id: c.ID}
	if c.ID == "" {
		key.mac = c.MAC
	}
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if cl.all == nil {
		cl.all = map[clientKey]*clientLock{}
	}
	l := cl.all[key]
	if l == nil {
		l = &clientLock{freed: make(chan struct{})}
		cl.all[key] = l
	}
	l.users++
	for l.alone || alone && l.asking > 0 {
		freed := l.freed
		cl.mu.Unlock()
		select {
		case <-freed:
		case <-ctx.Done():
			err = ctx.Err()
		}
		cl.mu.Lock()
		if err != nil {
			cl.leave(key, l)
			return nil, err
		}
	}
	if l.alone = alone; !alone {
		l.asking++
	}
	return sync.OnceFunc(func() {
		cl.mu.Lock()
		defer cl.mu.Unlock()
		if alone {
			l.alone = false
		} else {
			l.asking--
		}
		close(l.freed)
		l.freed = make(chan struct{})
		cl.leave(key, l)
	}), nil
}

// leave removes a lock that nobody has or waits for.
func (cl *clientLocks) leave(key clientKey, l *clientLock) {
	if l.users--; l.users == 0 {
		delete(cl.all, key)
	}
}
