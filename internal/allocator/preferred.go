package allocator

import (
	"errors"
	"net/netip"

	"berth/internal/ipam"
)

// TakePreferred takes the requested address, anywhere in the subnet.
func (t *Target) TakePreferred(req ipam.AddressRequest) (netip.Addr, error) {
	addr := req.Preferred
	if err := t.CheckHost(addr); err != nil {
		return netip.Addr{}, err
	}
	held, err := t.Lease(t.Sub.ID, addr)
	if err != nil {
		return netip.Addr{}, err
	}
	if held.Held() {
		if t.Repeats(req, held) {
			return addr, t.takeOver(req, held)
		}
		return addr, t.replay(req, held)
	}
	r := held.Reserved()
	switch {
	case r == nil:
		if err := t.CheckWanted(addr); err != nil {
			return netip.Addr{}, err
		}
	case surelyAuxiliary(&req, t.At) || !t.Index().Network(t.Sub.Network).CanBe(req, r.Owner):
		return netip.Addr{}, ReservedError(t.Change, addr, r)
	}
	req.TakeHint()
	// its owner may have it, even if it was excluded later
	return addr, t.Take(req, addr, held, KindOf(req, t.At, t.Now()))
}

// replay moves a live lease to this attachment if req is a manager's replay. Otherwise it refuses.
func (t *Target) replay(req ipam.AddressRequest, held *ipam.Lease) error {
	again, err := t.replays(req, held)
	if err != nil {
		return err
	}
	if !again {
		return HeldError(t.Change, t.Sub, held)
	}
	moved := *held
	moved.Attachment, moved.Host = t.At.ID, t.Host() // another manager may lead now
	if _, err := t.Event(&ipam.Event{Verb: ipam.LeaseMoved, Space: t.Sub.Space, Subnet: t.Sub.CIDR,
		Address: held.Address,
		Lease:   held.ID, Attachment: t.At.ID, Name: held.Name,
		Detail: "replay of pool " + held.Attachment.Short()}); err != nil {
		return err
	}
	if err := t.SetLease(t.Sub.ID, held.Address, held, &moved); err != nil {
		return err
	}
	return SetHeir(t.Change, held.Attachment, t.At.ID, true)
}

// replays reports whether req is a swarm manager's replay after its restart. The request comes through the new
// attachment, the heir. It asks by address and without a MAC for what the old attachment holds.
func (t *Target) replays(req ipam.AddressRequest, held *ipam.Lease) (bool, error) {
	if !t.At.Swarm || req.MAC != (ipam.MAC{}) || held.MAC != (ipam.MAC{}) || held.Attachment == (ipam.ID{}) ||
		req.Gateway != (held.Kind == ipam.Gateway) {
		return false, nil
	}
	old, err := t.Attachment(held.Attachment)
	if errors.Is(err, ipam.ErrNotFound) {
		return false, nil
	}
	return err == nil && old.Heir == t.At.ID, err
}
