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

// lockTime bounds the wait for another process that moves the container.
const lockTime = 15 * time.Second

// Mover takes containers off Docker networks and connects them, for all of Berth. It locks a container from its first
// step until Done. Until then no other process in the same network namespace can move the container. The zero Mover is
// ready for use.
type Mover struct {
	mu   sync.Mutex
	held map[string]net.Listener // by container id; a process that ends lets go of its names
}

// Off takes a container (by full id) off a network.
func (m *Mover) Off(ctx context.Context, api *client.Client, on, container string, force bool) error {
	if err := m.lock(ctx, container); err != nil {
		return err
	}
	_, err := api.NetworkDisconnect(ctx, on, client.NetworkDisconnectOptions{Container: container, Force: force})
	return err
}

// on connects a container (by full id) to a network.
func (m *Mover) on(ctx context.Context, api *client.Client, on, container string,
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

// lock locks a container. It waits until no other process moves it, at most lockTime.
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
			return ipam.Refuse(ipam.ErrInUse, "another berth process moves container %s right now; `ss -xlp | grep "+
				"%s` shows that process. Try again when it has ended", container[:min(len(container), 12)],
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
		return fmt.Errorf("cannot take the lock of container %s: %w", container, err)
	}
	if m.held == nil {
		m.held = map[string]net.Listener{}
	}
	m.held[container] = lock
	return nil
}

// lockName is an abstract socket address (unix(7)). It needs no file, and nobody has to remove it.
func lockName(container string) string { return "@berth-moves-" + container }
