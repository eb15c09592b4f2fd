package driver

import (
	"slices"
	"testing"
	"time"
)

// serial is what a swarm manager sends with each request, and with that for a gateway.
var (
	serial        = opts{optSerial: "true"}
	serialGateway = opts{optSerial: "true", optAddressType: typeGateway}
)

// TestSwarmReplay: a restarted manager asks for all its pools and addresses again, by address and without a MAC. It
// gets the same ones, through a new pool, and nothing is given twice. The new pool's end is the old one's too (LN-5,
// LN-9).
func TestSwarmReplay(t *testing.T) {
	b := newBench(t)
	before := b.pool("global", "10.0.9.0/24", "", serial).PoolID
	gateway := b.take(before, "", serialGateway)
	tasks := []string{b.take(before, "", serial), b.take(before, "", serial), b.take(before, "", serial)}
	leaked := len(tasks) - 1
	if slices.Contains(tasks, gateway) || tasks[0] == tasks[1] || tasks[1] == tasks[2] {
		t.Fatalf("given twice: %s %v", gateway, tasks)
	}
	b.reopen()
	after := b.pool("global", "10.0.9.0/24", "", serial).PoolID
	if after == before {
		t.Fatal("the second attachment has the id of the first")
	}
	if got := b.take(after, gateway, serialGateway); got != gateway {
		t.Errorf("the gateway moved from %s to %s", gateway, got)
	}
	for _, task := range tasks[:leaked] {
		if got := b.take(after, task, serial); got != task {
			t.Errorf("asked for %s, got %s", task, got)
		}
	}
	next := b.take(after, "", serial)
	if slices.Contains(tasks, next) || next == gateway {
		t.Errorf("%s was given twice", next)
	}
	b.check()
	_, refused := b.tryTake(after, tasks[0], mac(1))
	wantText(t, refused, tasks[0], "held by")
	for _, addr := range []string{next, tasks[0], tasks[1], gateway} {
		b.give(after, addr)
	}
	b.drop(after)
	if got := b.subnets("global"); len(got) != 0 {
		t.Errorf("left of the manager's two lives: %v", got)
	}
	b.check()
}

// TestSwarmReplayTwice: a manager that dies in the midst of its replay comes a third time.
func TestSwarmReplayTwice(t *testing.T) {
	b := newBench(t)
	first := b.pool("global", "10.0.9.0/24", "", serial).PoolID
	gateway := b.take(first, "", serialGateway)
	x, y := b.take(first, "", serial), b.take(first, "", serial)
	second := b.pool("global", "10.0.9.0/24", "", serial).PoolID
	b.take(second, gateway, serialGateway)
	b.take(second, x, serial)
	third := b.pool("global", "10.0.9.0/24", "", serial).PoolID
	b.take(third, gateway, serialGateway) // every replay begins with it
	for _, addr := range []string{x, y} {
		if got := b.take(third, addr, serial); got != addr {
			t.Errorf("asked for %s, got %s", addr, got)
		}
	}
	b.take(third, gateway, serialGateway)
	for _, addr := range []string{x, y, gateway} {
		b.give(third, addr)
	}
	b.drop(third)
	if got := b.subnets("global"); len(got) != 0 {
		t.Errorf("left: %v", got)
	}
	b.check()
}

// TestSwarmReplayWithoutTasks: a network on which nothing ran has a gateway only. Its end after a replay is its end.
func TestSwarmReplayWithoutTasks(t *testing.T) {
	for _, o := range []opts{nil, {"gateway": "none"}, {"gateway": "10.0.9.77"}} {
		b := newBench(t)
		with := func(more opts) opts {
			all := opts{}
			for _, part := range []opts{o, more} {
				for key, value := range part {
					all[key] = value
				}
			}
			return all
		}
		first := b.pool("global", "10.0.9.0/24", "", with(nil)).PoolID
		gateway := "10.0.9.77"
		if o["gateway"] != gateway {
			gateway = b.take(first, "", with(serialGateway))
		}
		second := b.pool("global", "10.0.9.0/24", "", with(nil)).PoolID
		if got, refused := b.tryTake(second, gateway, with(serialGateway)); got != gateway {
			t.Errorf("%v: the gateway %s again: %s %s", o, gateway, got, refused)
		}
		b.give(second, gateway)
		b.drop(second)
		if got := b.subnets("global"); len(got) != 0 {
			t.Errorf("%v: left of the manager's two lives: %v", o, got)
		}
		b.check()
	}
}

// TestSwarmLeak: the manager forgets some addresses without a release (engine.md). What it does not ask for again after
// its restart is nobody's, and must not outlive the network.
func TestSwarmLeak(t *testing.T) {
	b := newBench(t)
	first := b.pool("global", "10.0.9.0/24", "", serial).PoolID
	gateway := b.take(first, "", serialGateway)
	kept, _ := b.take(first, "", serial), b.take(first, "", serial)
	second := b.pool("global", "10.0.9.0/24", "", serial).PoolID
	b.take(second, gateway, serialGateway)
	b.take(second, kept, serial)
	b.give(second, kept)
	b.give(second, gateway)
	b.drop(second)
	if got := b.subnets("global"); len(got) != 0 {
		t.Errorf("an address that the manager has forgotten keeps the subnet for ever: %v", got)
	}
}

// TestSwarmSameAddress: within one life of the manager nothing is a replay. A second container that wants the address
// of the first is refused, as everywhere: the manager sends no MAC for either (GA-22, LN-9).
func TestSwarmSameAddress(t *testing.T) {
	b := newBench(t)
	p := b.pool("global", "10.0.9.0/24", "", serial).PoolID
	gateway := b.take(p, "", serialGateway)
	addr := b.take(p, "10.0.9.77", serial)
	_, refused := b.tryTake(p, addr, serial)
	wantText(t, refused, addr, "held by a static address")

	after := b.pool("global", "10.0.9.0/24", "", serial).PoolID
	_, refused = b.tryTake(after, addr, serial)
	wantText(t, refused, addr, "held by") // a replay begins with the gateway; this is another network
	b.take(after, gateway, serialGateway)
	b.take(after, addr, serial)
	_, refused = b.tryTake(after, addr, serial)
	wantText(t, refused, addr, "held by")
}

// TestSwarmOlderTakesNothing: a replay comes through a pool that is newer than the one it takes from. Two networks of
// one subnet in one life of the manager: what the newer one holds, the older one is refused (GA-22, LN-9).
func TestSwarmOlderTakesNothing(t *testing.T) {
	b := newBench(t)
	older := b.pool("global", "10.0.9.0/24", "", serial).PoolID
	b.clock.move(time.Second)
	newer := b.pool("global", "10.0.9.0/24", "", serial).PoolID
	addr := b.take(newer, "10.0.9.77", serial)
	_, refused := b.tryTake(older, addr, serial)
	wantText(t, refused, addr, "held by")
}

// TestSwarmNoReplayWithMAC: a lease that was taken with a MAC is no manager's, and a request with one is no replay.
func TestSwarmNoReplayWithMAC(t *testing.T) {
	b := newBench(t)
	first := b.pool("global", "10.0.9.0/24", "", serial).PoolID
	byMAC, bare := b.take(first, "", mac(1)), b.take(first, "", serial)
	second := b.pool("global", "10.0.9.0/24", "", serial).PoolID
	_, refused := b.tryTake(second, byMAC, serial)
	wantText(t, refused, byMAC, "held by", macText(1))
	_, refused = b.tryTake(second, bare, mac(2))
	wantText(t, refused, bare, "held by")
}

// TestSwarmTwin: the node asks for the manager's subnet and addresses again in the local space, and after a crash once
// more, without a word of which network it is: one more attachment, whose gateway is the subnet's (LN-5, engine.md).
func TestSwarmTwin(t *testing.T) {
	b := newBench(t)
	manager := b.pool("global", "10.0.9.0/24", "", serial).PoolID
	gateway := b.take(manager, "", serialGateway)
	task := b.take(manager, "", serial)
	for range 2 {
		node := b.pool("local", "10.0.9.0/24", "", nil).PoolID
		if got := b.take(node, gateway, gatewayType); got != gateway {
			t.Errorf("the node's gateway is %s, the manager's %s", got, gateway)
		}
	}
	node := b.pool("local", "10.0.9.0/24", "", nil).PoolID
	if got := b.take(node, task, mac(1)); got != task {
		t.Errorf("the node asked for %s, got %s", task, got)
	}
	b.check()
}

// TestSwarmSecondSubnet: the request for a network's second subnet carries what was said of the first one's gateway.
func TestSwarmSecondSubnet(t *testing.T) {
	b := newBench(t)
	first := b.pool("global", "10.0.9.0/24", "", nil)
	b.take(first.PoolID, "", serialGateway)
	second := b.pool("global", "10.0.10.0/24", "", serialGateway)
	if len(second.Data) != 0 {
		t.Errorf("the second subnet has the metadata %v", second.Data)
	}
	if got := b.take(second.PoolID, "", serialGateway); got != "10.0.10.1" {
		t.Errorf("its gateway is %s", got)
	}
	six := b.pool("global", "fd00:9::/64", "", serialGateway) // V6 stays false
	if got := b.take(six.PoolID, "", serialGateway); got != "fd00:9::1" {
		t.Errorf("the gateway of the IPv6 subnet is %s", got)
	}
}
