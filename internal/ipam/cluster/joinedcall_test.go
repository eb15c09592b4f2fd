package cluster_test

import (
	"errors"
	"strings"
	"testing"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
	"berth/internal/ipam/ledger"
	"berth/internal/ipam/service"
	"berth/store"
)

// An engine's request goes to the store of the network or space that it names. The id of the pool decides the
// store of later requests (LN-5).
func TestJoinedRequests(t *testing.T) {
	p, a := furnished(t)
	for row := range ipamtest.Rows(2, `
		own    | space=local
		# whatever others have elsewhere
		own    | space=local cidr=10.77.0.0/24
		own    | space=lab cidr=10.5.7.0/24
		shared | space=global swarm
		shared | space=dmz
		shared | space=new
		own    | space=- net=own cidr=10.1.0.0/24
		own    | space=local net=own cidr=10.1.0.0/24
		own    | space=- net=lab cidr=10.5.0.0/24
		shared | space=- net=lan cidr=10.77.0.0/24
		shared | space=global net=lan swarm cidr=10.77.0.0/24
		shared | space=dmz net=dmz cidr=10.6.0.0/24
	`) {
		p.plays(strings.NewReplacer("STORE", row[0], "NAMED", row[1]).Replace(`
			STORE attach P NAMED
			STORE ask P mac=99 -> $IP
			STORE back P $IP
			has P mac=99 ->
			STORE detach P
			ask P ! notfound
			none detach P
			none back P $IP
		`))
		if pool := a.room.Pools["P"]; pool.Bears(clusterMark) != (row[0] == "shared") {
			t.Errorf("%s: pool %s", row[1], pool)
		}
	}
	p.plays(`
		attach P space=- net=nowhere ! notfound
		attach P space=lab net=own ! invalid
		attach P space=local net=lan ! invalid
		attach P space=global net=own swarm ! invalid
		attach P space=no/space ! invalid
		shared drain a
		attach P space=- net=lan ! host
		own attach P space=local
		shared undrain a
	`)
}

// A swarm's manager repeats the request that made a network, on any host. The network may have another name by
// then, and another network may have its old name.
func TestJoinedReplay(t *testing.T) {
	newJoinedHosts(t).plays(`
		network lan space=global subnet=10.77.0.0/24,pool
		attach A net=lan space=global swarm cidr=10.77.0.0/24 -> 10.77.0.0/24
		network.set lan name=lan2
		b: own old lan subnet=10.77.0.0/24,pool
		b: shared attach B net=lan space=global swarm cidr=10.77.0.0/24 -> 10.77.0.0/24
		# the same of a network that is the host's own store's still
		c: own old old space=yard subnet=10.90.0.0/24,pool
		c: own attach C net=old space=global swarm cidr=10.90.0.0/24
		c: network.set old name=older
		c: own attach D net=old space=global swarm cidr=10.90.0.0/24
	`)
}

// Records copied from one store to the other keep their ids, and references to them stay valid.
func TestJoinedForeignMark(t *testing.T) {
	p := newJoinedHosts(t)
	a := p.host("a")
	marked, err := service.Open(t.Context(), service.Config{Store: p.store.Join(), Host: "z",
		Member: &ipam.Member{Host: ipam.NewID(), Session: ipam.NewID()}})
	fine(t, err) // the service has another mark
	_, err = marked.Edit(t.Context(), ipam.EditOptions{},
		ipamtest.Edits(t, "network lan space=global subnet=10.77.0.0/24,pool")...)
	fine(t, err)
	pool := ipamtest.MustPool(t, marked, ipam.PoolRequest{Network: "lan", Space: ipam.GlobalSpace})
	n := a.room.Show("lan")
	if n.ID.Bears(clusterMark) {
		t.Fatal(n.ID)
	}
	_, err = a.NetworkOf(n.Subnets[0].ID)
	_, errTake := a.RequestAddress(t.Context(), ipam.AddressRequest{Pool: pool.ID})
	fine(t, errors.Join(err, errTake))
}

// What a witness reports is recorded in the store of the lease.
func TestJoinedLeaseRefs(t *testing.T) {
	p, _ := furnished(t)
	for network, store := range map[string]string{"own": "own", "lab": "own", "lan": "shared", "dmz": "shared"} {
		p.plays(strings.NewReplacer("NET", network, "STORE", store).Replace(`
			ask NET mac=9 -> $IP
			STORE seen $IP web
			lease $IP -> automatic web
			STORE lost $IP -> true
			lease $IP -> automatic web remembered
			STORE forget $IP
			lease $IP -> none
		`))
	}
}

// Guesses of both stores are counted together, and a corrected guess is counted in the store that made it.
func TestJoinedGuesses(t *testing.T) {
	newJoinedHosts(t).plays(`
		network lan space=global subnet=10.77.0.0/24,gw=10.77.0.1,pool
		network own subnet=10.1.0.0/24,gw=10.1.0.1,pool
		idle web
		attach lan net=lan space=-
		attach own net=own space=-
		shared ask lan -> $LAN
		own ask own -> $OWN
		lease $LAN -> automatic web?
		lease $OWN -> automatic web?
		guesses -> made 2 wrong 0
		both rename db
		none rename db
		guesses -> made 2 wrong 2
		local guesses -> made 1 wrong 1
	`)
}

// If a newer Berth has brought the shared store to another format, this host no longer writes there.
func TestNewerFormatMeanwhile(t *testing.T) {
	p := newJoinedHosts(t)
	p.plays("network lan space=global")
	fine(t, p.store.Join().Update(t.Context(),
		func(tx store.Tx) error { return tx.Put(ledger.FormatKey(), []byte("5")) }))
	p.plays("network lan2 space=global ! host; format 5")
}

// A project is locked in the own store of the deploying host and in the cluster's. Any host can take the lock
// away, and the deploy cannot get it back by renewing it (BD-1).
func TestDeployLockOfAnotherHost(t *testing.T) {
	newJoinedHosts(t).plays(`
		edit deploy.lock {"project":"shop","id":"ID:mine","host":"a","ttl":"1m"}
		edit deploy.lock {"project":"shop","id":"ID:mine","host":"a","ttl":"1m","renews":true}
		# a deploy on another host
		b: edit deploy.lock {"project":"shop","id":"ID:other","ttl":"1m"} ! inuse
		b: edit deploy.unlock {"project":"shop","force":true}
		b: edit deploy.unlock {"project":"shop","force":true} ! notfound
		edit deploy.lock {"project":"shop","id":"ID:mine","host":"a","ttl":"1m","renews":true} ! inuse
	`)
}
