package nft

import (
	"context"
	"fmt"
	"time"

	"github.com/vishvananda/netlink"
)

// devices are the kernel's notifications about devices. They stop if they are not read fast enough.
type devices struct {
	addresses chan netlink.AddrUpdate
	links     chan netlink.LinkUpdate
	end       context.CancelFunc // closes the sockets
	unclear   chan struct{}      // a notification could not be read
	running   map[int32]bool
}

// watchDevices starts the notifications. existing first reports the existing devices.
func watchDevices(ctx context.Context, existing bool) (*devices, error) {
	ctx, end := context.WithCancel(ctx)
	w := &devices{
		addresses: make(chan netlink.AddrUpdate, 64), links: make(chan netlink.LinkUpdate, 64), end: end,
		unclear: make(chan struct{}, 1), running: map[int32]bool{},
	}
	unclear := func(error) {
		select {
		case w.unclear <- struct{}{}:
		default:
		}
	}
	err := netlink.AddrSubscribeWithOptions(w.addresses, ctx.Done(),
		netlink.AddrSubscribeOptions{ErrorCallback: unclear})
	if err != nil {
		end()
		return nil, fmt.Errorf("cannot watch the addresses of network devices: %w", err)
	}
	err = netlink.LinkSubscribeWithOptions(w.links, ctx.Done(),
		netlink.LinkSubscribeOptions{ErrorCallback: unclear, ListExisting: existing})
	if err != nil {
		end()
		go drain(w.addresses)
		return nil, fmt.Errorf("cannot watch the network devices of this host: %w", err)
	}
	return w, nil
}

// close stops the notifications. It reads the pending ones, so that no sender blocks.
func (w *devices) close() {
	w.end()
	go drain(w.addresses)
	go drain(w.links)
}

func drain[T any](from <-chan T) {
	for range from {
	}
}

// hear handles notifications at once, even during changes, until ctx ends. If the kernel's notifications stop, it
// starts them again. Until then each comparison reads the addresses.
func (p *Provider) hear(ctx context.Context, w *devices) {
	again := time.NewTicker(every)
	defer again.Stop()
	for {
		p.stray.Store(true)
		p.watched.Store(true)
		p.listen(ctx, w)
		p.watched.Store(false)
		w.close()
		for w = nil; w == nil; {
			select {
			case <-ctx.Done():
				return
			case <-again.C:
			}
			w, _ = watchDevices(ctx, true)
		}
	}
}

// listen handles the notifications of one watch until it ends.
func (p *Provider) listen(ctx context.Context, w *devices) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.unclear:
		case _, open := <-w.addresses:
			if !open {
				return
			}
		case u, open := <-w.links:
			if !open {
				return
			}
			if !w.cameUp(u) {
				continue
			}
			p.announcer.Again(u.Attrs().Name)
		}
		p.stray.Store(true)
	}
}

// cameUp reports whether the device has just got its carrier back.
func (w *devices) cameUp(u netlink.LinkUpdate) bool {
	const iffRunning = 0x40
	was, known := w.running[u.Index]
	now := u.Flags&iffRunning != 0
	w.running[u.Index] = now
	return now && (!known || !was)
}
