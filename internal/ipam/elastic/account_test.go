package elastic_test

import "testing"

// TestClaims: a new account does not take over a container to which another account's address is mapped, whether it
// runs or not (CS-14).
func TestClaims(t *testing.T) {
	begins(t, `
		run shop-web-1
		to E0 shop-web-1
		account shop shop/* ! OtherAccount; shop-web-1; E0; default
		stop shop-web-1
		account shop shop/* ! OtherAccount; shop-web-1; E0
		account other other/*
		off E0
		account shop shop/*
		run shop-web-1
		to E0 shop-web-1 ! OtherAccount; shop
	`)
}

// TestOfAnotherAccountSince: if a network's rule changes and a container's name now means another account's
// owner, the container is no longer mapped, whether it runs or not, and the check finds that. It is mapped again
// when it belongs to the account again (CS-14).
func TestOfAnotherAccountSince(t *testing.T) {
	begins(t, `
		account ops timer/*
		run cron-7 -> G1
		reserve net1 cron-9 G9
		to E0 cron-7
		to E1 cron-9
		network.set net1 rule=cron-*=owner:job/*
		told -> E0=G1; E1=G9 staged
		network.set net1 rule=cron-*=owner:timer/*
		told ->
		show E0 -> allocated default cron-7
		found -> unmapped_elastic E0
		details -> ~cron-7 now belongs to account ops
		network.set net1 rule=cron-*=owner:job/*
		told -> E0=G1; E1=G9 staged
		show E0 -> allocated default cron-7
	`)
}

// TestOfOtherAccounts: the most specific pattern decides whose a container is, and a MAC does not get around it
// (CS-14).
func TestOfOtherAccounts(t *testing.T) {
	begins(t, `
		account shop shop/*
		account db shop/db/*
		reserve net1 shop/db/1 G9
		to E0 shop/db/1 ! OtherAccount; default; db
		allocate account=db
		to E2 shop/db/1
		off E2
		to E0 shop-db-1 ! OtherAccount
		reserve net1 02:00:00:00:00:07 G30
		to E0 02:00:00:00:00:07
		told -> E0=G30 staged
		# the container that runs is another account's
		run shop-cart-1 mac=7 -> G30
		told ->
	`)
}

// TestShownInterface: an address shows its guest's interface at the owner: the interface of the association's
// reservation, the first one for a guest without a reservation, and after a move that of the new guest (CS-6).
func TestShownInterface(t *testing.T) {
	begins(t, `
		network net2 subnet=10.21.0.0/24,pool
		elastic net2 on
		reserve net1 web G9,G10
		reserve net2 web 10.21.0.9 nic=1
		to E0 web guest=G9 move
		guest E0 -> G9 0
		to E0 web guest=10.21.0.9 move
		guest E0 -> 10.21.0.9 1
		to E0 web guest=G10 move
		guest E0 -> G10 0
		to E0 web guest=10.21.0.9 move
		guest E0 -> 10.21.0.9 1
		unreserve net2 web
		guest E0 -> 10.21.0.9 0
		run job -> G1
		to E0 job move
		guest E0 -> G1 0
	`)
}
