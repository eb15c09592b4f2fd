package elastic_test

import (
	"testing"

	"berth/internal/ipam"
)

// TestClaims: a new account does not take over a container to which another account's address is mapped, whether it
// runs or not (CS-14).
func TestClaims(t *testing.T) {
	b := begin(t)
	ip := b.start("shop-web-1")
	b.edit(&ipam.AssociateElastic{Address: addr(elastic), Instance: "shop-web-1"})
	claims := &ipam.CreateAccount{Account: "shop", Owners: []string{"shop/*"}}
	b.refused(claims, ipam.OtherAccount, "shop-web-1", elastic, "default")
	b.stop(ip)
	b.refused(claims, ipam.OtherAccount, "shop-web-1", elastic)
	b.edit(&ipam.CreateAccount{Account: "other", Owners: []string{"other/*"}})
	b.edit(&ipam.DisassociateElastic{Address: addr(elastic)})
	b.edit(claims)
	b.start("shop-web-1")
	b.refused(&ipam.AssociateElastic{Address: addr(elastic), Instance: "shop-web-1"}, ipam.OtherAccount, "shop")
}
