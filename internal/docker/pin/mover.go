package pin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"

	"berth/internal/ipam"

	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
)

// lockTime is how long a container is waited for that another process moves.
const lockTime = 15 * time.Second

// Mover takes containers off Docker networks and puts them on, for all of Berth. From the first step on it has the lock
// of the container, until Done: no other process that is in the same network namespace moves it meanwhile. The zero
// Mover is ready for use.
type Mover struct {
	mu   sync.Mutex
	held map[string]net.Listener // by the id of the container: a name that one process has, and that ends with it
}

// Off takes a container, by its whole id, off a network.
func (m *Mover) Off(ctx context.Context, api *client.Client, on, container string, force bool) error {
	if err := m.lock(ctx, container); err != nil {
		return err
	}
	_, err := api.NetworkDisconnect(ctx, on, client.NetworkDisconnectOptions{Container: container, Force: force})
	return err
}

// On puts a container, by its whole id, on a network.
func (m *Mover) On(ctx context.Context, api *client.Client, on, container string,
	settings *network.EndpointSettings) error {
	if err := m.lock(ctx, container); err != nil {
		return err
	}
	_, err := api.NetworkConnect(ctx, on, client.NetworkConnectOptions{Container: container, EndpointConfig: settings})
	return err
}

// Done lets other processes move a container.
func (m *Mover) Done(container string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if lock := m.held[container]; lock != nil {
		_ = lock.Close()
		delete(m.held, container)
	}
}

// Close lets other processes move all containers.
func (m *Mover) Close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for container, lock := range m.held {
		_ = lock.Close()
		delete(m.held, container)
	}
}

// lock waits until no other process moves a container.
func (m *Mover) lock(ctx context.Context, container string) error {
	ctx, cancel := context.WithTimeout(ctx, lockTime)
	defer cancel()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		err := m.tryLock(container)
		if !errors.Is(err, syscall.EADDRINUSE) {
			return err
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return ipam.Refuse(ipam.ErrInUse, "another berth process moves container %s at this moment; "+
				"`ss -xlp | grep %s` shows which one. Try again when it has ended", container[:min(len(container), 12)],
				lockName(container))
		}
	}
}

func (m *Mover) tryLock(container string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.held[container] != nil {
		return nil
	}
	lock, err := net.Listen("unix", lockName(container))
	if err != nil {
		return fmt.Errorf("the lock of container %s: %w", container, err)
	}
	if m.held == nil {
		m.held = map[string]net.Listener{}
	}
	m.held[container] = lock
	return nil
}

// lockName is in the abstract namespace (unix(7)): it needs no file, and nobody has to remove it.
func lockName(container string) string { return "@berth-moves-" + container }
