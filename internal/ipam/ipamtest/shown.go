package ipamtest

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"berth/internal/ipam"
	"berth/store"
)

// Everything is all that there is to see now.
func (r *Stage) Everything() (all Shown) {
	r.T.Helper()
	var err error
	if all.Networks, err = r.S.Networks(ctx, ipam.NetworkFilter{}); err != nil {
		r.T.Fatal(err)
	}
	for _, n := range all.Networks {
		all.Whole = append(all.Whole, r.Show(n.Name))
	}
	if all.Subnets, err = r.S.Subnets(ctx, ""); err != nil {
		r.T.Fatal(err)
	}
	all.Leases = ListLeases(r.T, r.S, ipam.LeaseFilter{Remembered: true})
	all.Reservations = r.Reservations(ipam.AddressFilter{})
	all.Taken = r.Taken(ipam.AddressFilter{})
	return all
}

// Shown is all that there is to see.
type Shown struct {
	Networks     []ipam.NetworkInfo
	Whole        []ipam.NetworkInfo // with their maps
	Subnets      []ipam.SubnetInfo
	Leases       []ipam.LeaseInfo
	Reservations []ipam.ReservationInfo
	Taken        []ipam.TakenAddress
}

// ShowOptions compare what is shown.
var ShowOptions = cmp.Options{
	cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{}),
	cmp.Comparer(func(a, b ipam.Count) bool { return a.Int.Cmp(b.Int) == 0 }),
	cmp.Comparer(func(a, b ipam.Range) bool { return a == b }),
	cmpopts.EquateEmpty(),
}

// ShownDiff says where two differ. Most often they do not, which is found out a hundred times as fast.
func ShownDiff(a, b Shown) string {
	if reflect.DeepEqual(a, b) {
		return ""
	}
	return cmp.Diff(a, b, ShowOptions)
}

// Show is a network that is there.
func (r *Stage) Show(network string) ipam.NetworkInfo {
	r.T.Helper()
	n, err := r.S.Network(ctx, network)
	if err != nil {
		r.T.Fatalf("network %s: %v", network, err)
	}
	return n
}

// Reservations are those that a filter leaves.
func (r *Stage) Reservations(f ipam.AddressFilter) (all []ipam.ReservationInfo) {
	r.T.Helper()
	for info, err := range r.S.Reservations(ctx, f) {
		fine(r.T, err)
		all = append(all, info)
	}
	return all
}

// Taken are the addresses that owners hold, those that a filter leaves.
func (r *Stage) Taken(f ipam.AddressFilter) (all []ipam.TakenAddress) {
	r.T.Helper()
	for info, err := range r.S.Taken(ctx, f) {
		fine(r.T, err)
		all = append(all, info)
	}
	return all
}

// Dump is every record of a store but those of the events' trimming, by key, in hexadecimal.
func Dump(t rapid.TB, st store.Store) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := st.View(context.Background(), func(tx store.Tx) error {
		clear(all)
		for rec, err := range tx.Scan(store.Range{}) {
			if err != nil {
				return err
			}
			all[fmt.Sprintf("%q", rec.Key)] = string(rec.Value)
		}
		return nil
	})
	fine(t, err)
	// the daemon's place in the cluster, and that something may have changed
	if *OverEtcd != "" {
		maps.DeleteFunc(all, func(key, _ string) bool {
			return key == `"mplan"` || strings.HasPrefix(key, `"h`)
		})
	}
	return all
}

// LastEvent is the id of the last event that there is.
func LastEvent(t testing.TB, r *Stage) uint64 {
	t.Helper()
	all, err := r.S.Events(ctx, ipam.EventFilter{Last: 1})
	if err != nil || len(all) == 0 {
		t.Fatal(len(all), err)
	}
	return all[0].ID
}

// EventsAfter lists the events behind one.
func EventsAfter(t testing.TB, r *Stage, last uint64) []ipam.Event {
	t.Helper()
	all, err := r.S.Events(ctx, ipam.EventFilter{After: last})
	fine(t, err)
	return all
}
