package driver

import (
	"testing"
)

// serialGateway is what a swarm's manager sends with a request for a gateway.
var serialGateway = opts{optSerial: "true", optAddressType: typeGateway}

// TestSwarmSecondSubnet tests that the request for a network's second subnet has the options of the first one's
// gateway.
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
