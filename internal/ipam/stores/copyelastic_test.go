package stores_test

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
	"berth/internal/ipam/service"
	"berth/internal/ipam/stores"
)

// elasticRecords returns the records of accounts, ranges and addresses, without those of edges.
func elasticRecords(all map[string]string) map[string]string {
	found := map[string]string{}
	for key, value := range all {
		if strings.ContainsAny(key[1:2], "ufg") {
			found[key] = value
		}
	}
	return found
}

// TestCopyElastic copies accounts, ranges, addresses and associations to a shared store byte for byte, with ids,
// times and history. No host takes over what was mapped.
func TestCopyElastic(t *testing.T) {
	r := newCopyRoom(t).withElastic()
	own, cluster := r.both()
	records := elasticRecords(ipamtest.Dump(t, r.Store))
	used, err := own.Usage(ctx, ipam.UsageFilter{Until: r.Clock.Now()})
	fine(t, err)
	want := ipam.CopiedElastic{Accounts: 1, Ranges: 2, Addresses: 4, Associations: 2}
	plan := mustCopy(t, own, cluster, ipam.CopyOptions{DryRun: true})
	if diff := cmp.Diff(&want, plan.Elastic); diff != "" {
		t.Errorf("it is foretold:\n%s", diff)
	}
	report := mustCopy(t, own, cluster, ipam.CopyOptions{})
	if len(report.Elastic.Digest) != 64 || report.Elastic.Events == 0 {
		t.Errorf("it was copied: %+v", report.Elastic)
	}
	if diff := cmp.Diff(records, elasticRecords(ipamtest.Dump(t, r.common))); diff != "" {
		t.Errorf("the target has:\n%s", diff)
	}
	if left := elasticRecords(ipamtest.Dump(t, r.Store)); len(left) > 0 {
		t.Errorf("the source has: %v", left)
	}
	there, err := cluster.Usage(ctx, ipam.UsageFilter{Until: r.Clock.Now()})
	fine(t, err)
	if diff := cmp.Diff(used.Accounts, there.Accounts); diff != "" {
		t.Errorf("the usage is another one:\n%s", diff)
	}
	for key, value := range ipamtest.Dump(t, r.common) {
		if key[1] == 'x' && !strings.Contains(value, `"untimed":true`) {
			t.Errorf("%s is %s, and would be taken over", key, value)
		}
	}
	checked(t, own, cluster)
}

// TestCopyElasticUndone: a copy that is taken back leaves the target as it was, with its own accounts, ranges and
// addresses.
func TestCopyElasticUndone(t *testing.T) {
	r := newCopyRun(t, true)
	other := r.other(2)
	edits(t, other, `
		edit account.create {"account": "theirs"}
		edit elastic.range.add {"range": "100.64.9.0+8"}
		edit elastic.allocate {"account": "theirs"}
	`)
	before, theirs := elasticRecords(ipamtest.Dump(t, r.Store)), elasticRecords(ipamtest.Dump(t, r.common))
	stopped := false
	for at := 3; !stopped || at < 12; at++ {
		if err := r.cutOffAt(at); err == nil {
			t.Fatalf("it was not cut off in transaction %d", at)
		}
		stopped = stopped || len(elasticRecords(ipamtest.Dump(t, r.common))) > len(theirs)+2
		if all, err := other.Elastics(ctx, "", netip.Addr{}, 0); err != nil || len(all) != 1 {
			t.Fatalf("another host sees %v, %v meanwhile", all, err)
		}
		if _, err := other.Edit(ctx, ipam.EditOptions{}, &ipam.AllocateElastic{
			Address: netip.MustParseAddr("100.64.7.9")}); err == nil {
			t.Fatal("another host takes an address of what is copied")
		}
		if err := r.copy(ipam.CopyOptions{Undo: true}); err != nil && !errors.Is(err, ipam.ErrNotFound) {
			t.Fatal(err)
		}
		if diff := cmp.Diff(theirs, elasticRecords(ipamtest.Dump(t, r.common))) + cmp.Diff(before,
			elasticRecords(ipamtest.Dump(t, r.Store))); diff != "" {
			t.Fatalf("cut off in transaction %d, and taken back:\n%s", at, diff)
		}
	}
	// an account with the same values is no collision
	edits(t, other, shopAccount)
	fine(t, r.copy(ipam.CopyOptions{}))
	if all, err := other.Elastics(ctx, "", netip.Addr{}, 0); err != nil || len(all) != 5 {
		t.Errorf("another host sees %v, %v", all, err)
	}
}

// TestCopyElasticRefused: a copy that collides is refused with the reason before anything is written.
func TestCopyElasticRefused(t *testing.T) {
	for name, tc := range map[string]struct{ here, there, spaces, want string }{
		"a network of the host": {here: `
			network own subnet=10.66.0.0/24,pool
			edit network.modify {"network": "own", "elastic": "on"}
			reserve own alone
			edit elastic.allocate {"address": "100.64.7.12"}
			edit elastic.associate {"address": "100.64.7.12", "instance": "alone", "network": "own"}`,
			want: "100.64.7.12 is associated with alone on network own of the space local, which belongs to one host"},
		"a space that stays": {spaces: "lab",
			want: "100.64.7.0 is associated with web on network lan of the space global, which is not copied"},
		"an account": {there: `edit account.create {"account": "shop", "domain": "other"}`,
			want: "the account shop has a different domain"},
		"owners": {there: `edit account.create {"account": "market", "owners": ["db"]}`,
			want: "the owners db of account shop belong to account market in the target"},
		"a claim": {there: `edit account.create {"account": "market", "owners": ["w*"]}`,
			want: "100.64.7.0 of account default is associated with web, which would belong to account market"},
		"a range": {there: `edit elastic.range.add {"range": "100.64.7.8+2"}`,
			want: "the elastic range 100.64.7.0/28 overlaps the range 100.64.7.8/31 of the target"},
		"a subnet under a range": {there: "network x space=far subnet=100.64.0.0/16",
			want: "overlaps the subnet 100.64.0.0/16, which network x of space far has in the target"},
		"a range over a subnet": {there: `edit elastic.range.add {"range": "192.0.2.240+4"}`,
			want: "the subnet 192.0.2.0/24 overlaps the elastic range 192.0.2.240/30"},
		"a quota": {
			here:  `edit account.create {"account": "default", "quota": 9}`,
			there: `edit account.create {"account": "default", "quota": 1}`,
			want:  "the account default has a different domain"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newCopyRoom(t).withElastic()
			own, cluster := r.both()
			for s, lines := range map[*service.Service]string{own: tc.here, cluster: tc.there} {
				if lines != "" {
					edits(t, s, lines)
				}
			}
			before, there := ipamtest.Dump(t, r.Store), ipamtest.Dump(t, r.common)
			spaces := strings.Fields(tc.spaces)
			_, err := stores.CopySpaces(ctx, own.Ledger, cluster.Ledger, ipam.CopyOptions{Spaces: spaces})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v does not say %q", err, tc.want)
			}
			if diff := cmp.Diff(before, ipamtest.Dump(t, r.Store)) + cmp.Diff(there,
				ipamtest.Dump(t, r.common)); diff != "" {
				t.Errorf("it was written:\n%s", diff)
			}
		})
	}
}

// TestCopyElasticStays: elastic addresses that hosts share stay when one host leaves. The refusal names an
// association that the copy would cut.
func TestCopyElasticStays(t *testing.T) {
	r := newCopyRun(t, false)
	other := r.other(2)
	want := "100.64.7.0 is associated with web on network lan, and elastic addresses stay in the store, because host h2 " +
		"shares them"
	if err := r.copy(ipam.CopyOptions{}); err == nil || !strings.Contains(err.Error(), want) {
		t.Fatalf("%v does not say %q", err, want)
	}
	edits(t, other, `
		edit elastic.disassociate {"address": "100.64.7.0"}
		edit elastic.disassociate {"address": "100.64.7.1"}
	`)
	fine(t, r.copy(ipam.CopyOptions{}))
	if all, err := other.Elastics(context.Background(), "", netip.Addr{}, 0); err != nil || len(all) != 4 {
		t.Errorf("%v, %v", all, err)
	}
	checked(t, other)
}
