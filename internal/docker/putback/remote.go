package putback

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"

	"berth/internal/docker/pin"
	"berth/internal/ipam"
)

// Connector disconnects and reconnects containers: Local or Remote. It has the methods of pin.Connector, but Disconnect
// also gets the addresses that the container asks for afterwards.
type Connector interface {
	Endpoint(ctx context.Context, id, network string) (*pin.Endpoint, error)
	Disconnect(ctx context.Context, ep *pin.Endpoint, addrs []netip.Addr) error
	Reconnect(ctx context.Context, ep *pin.Endpoint, addrs []netip.Addr) (off bool, err error)
	Restore(ctx context.Context, ep *pin.Endpoint, addrs []netip.Addr) error
	Close()
}

// Local is the Connector of a process that reaches the engine.
type Local struct{ *pin.Connector }

// Disconnect implements Connector.
func (l Local) Disconnect(ctx context.Context, ep *pin.Endpoint, _ []netip.Addr) error {
	return l.Connector.Disconnect(ctx, ep)
}

// Remote is the Connector of a daemon that cannot reach its engine. `berth witness` moves the containers for it.
type Remote struct {
	Onlooker func() ipam.Onlooker // returns nil if none is connected
}

// Close implements Connector.
func (r Remote) Close() {}

// Endpoint implements Connector.
func (r Remote) Endpoint(ctx context.Context, id, network string) (*pin.Endpoint, error) {
	answer, err := r.do(ctx, ipam.MoveOrder{Step: ipam.MoveRead, Container: id, Network: network})
	if err != nil {
		return nil, err
	}
	var ep pin.Endpoint
	if err := json.Unmarshal(answer.Endpoint, &ep); err != nil {
		return nil, fmt.Errorf("cannot read the report of berth witness about the endpoint of container %s: %w", id,
			err)
	}
	return &ep, nil
}

// Disconnect implements Connector.
func (r Remote) Disconnect(ctx context.Context, ep *pin.Endpoint, addrs []netip.Addr) error {
	_, err := r.with(ctx, ipam.MoveOff, ep, addrs)
	return err
}

// Reconnect implements Connector.
func (r Remote) Reconnect(ctx context.Context, ep *pin.Endpoint, addrs []netip.Addr) (off bool, err error) {
	answer, err := r.with(ctx, ipam.MoveOn, ep, addrs)
	return answer.Off, err
}

// Restore implements Connector.
func (r Remote) Restore(ctx context.Context, ep *pin.Endpoint, addrs []netip.Addr) error {
	_, err := r.with(ctx, ipam.MoveRestore, ep, addrs)
	return err
}

func (r Remote) with(ctx context.Context, step ipam.MoveStep, ep *pin.Endpoint,
	addrs []netip.Addr) (ipam.MoveAnswer, error) {
	text, err := json.Marshal(ep)
	if err != nil {
		return ipam.MoveAnswer{}, err
	}
	return r.do(ctx, ipam.MoveOrder{Step: step, Container: ep.ID, Network: ep.Network, Endpoint: text,
		Addresses: addrs})
}

// do runs one step at the onlooker. After a failed MoveOn the answer has Off set, because the container may be
// disconnected; its note remains.
func (r Remote) do(ctx context.Context, order ipam.MoveOrder) (ipam.MoveAnswer, error) {
	onlooker := r.Onlooker()
	if onlooker == nil {
		return ipam.MoveAnswer{Off: order.Step == ipam.MoveOn}, errors.New("no berth witness is connected to move " +
			"the container")
	}
	answer, err := onlooker.Move(ctx, order)
	switch {
	case err != nil:
		return ipam.MoveAnswer{Off: order.Step == ipam.MoveOn}, err
	case answer.Gone:
		return answer, ipam.Refuse(ipam.ErrNotFound, "%s", answer.Error)
	case answer.Error != "":
		return answer, errors.New(answer.Error)
	}
	return answer, nil
}

// Do runs one step for a daemon, if the mode allows it. It always reconnects a disconnected container.
func Do(ctx context.Context, connector Connector, mode Mode, order ipam.MoveOrder) ipam.MoveAnswer {
	var answer ipam.MoveAnswer
	var ep pin.Endpoint
	err := mayMove(mode, &order)
	if err == nil && order.Step != ipam.MoveRead {
		err = json.Unmarshal(order.Endpoint, &ep)
	}
	if err == nil {
		switch order.Step {
		case ipam.MoveRead:
			var read *pin.Endpoint
			if read, err = connector.Endpoint(ctx, order.Container, order.Network); err == nil {
				answer.Endpoint, err = json.Marshal(read)
			}
		case ipam.MoveOff:
			err = connector.Disconnect(ctx, &ep, order.Addresses)
		case ipam.MoveOn:
			answer.Off, err = connector.Reconnect(ctx, &ep, order.Addresses)
		case ipam.MoveRestore:
			err = connector.Restore(ctx, &ep, order.Addresses)
		default:
			err = fmt.Errorf("%q is no step of a move", order.Step)
		}
	}
	if err != nil {
		answer.Error, answer.Gone = err.Error(), errors.Is(err, ipam.ErrNotFound)
	}
	return answer
}

// mayMove refuses to disconnect a container that the mode does not put back. Only a container with a reservation has
// addresses in the order.
func mayMove(m Mode, order *ipam.MoveOrder) error {
	if order.Step == ipam.MoveOff && (m == off || m == Reserved && len(order.Addresses) == 0) {
		return fmt.Errorf("this berth witness runs with --put-back %s", m)
	}
	return nil
}
