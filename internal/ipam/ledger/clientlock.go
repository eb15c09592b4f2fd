package ledger

import (
	"context"
	"sync"

	"berth/internal/ipam"
)

// clientLocks keep apart what must not run side by side for one client of a DHCP server: that its lease is given back,
// and that it is asked for and written. Who asks shares; who gives back is alone.
type clientLocks struct {
	mu  sync.Mutex
	all map[clientKey]*clientLock
}

// clientKey is by what a server knows a client.
type clientKey struct {
	id  string
	mac ipam.MAC
}

type clientLock struct {
	asking int           // who shares
	alone  bool          // somebody is alone
	freed  chan struct{} // closed when anybody goes; the next waiter makes another
	users  int           // who has it or waits
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

// leave forgets a lock that nobody has or waits for.
func (cl *clientLocks) leave(key clientKey, l *clientLock) {
	if l.users--; l.users == 0 {
		delete(cl.all, key)
	}
}
