package elastic_test

import (
	"context"
	"math"
	"net/netip"
	"testing"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"

	"pgregory.net/rapid"
)

// ledgerOfUsage is the slow, obvious model: each address's account in each minute since the beginning.
type ledgerOfUsage struct {
	has     map[netip.Addr]string
	minutes []map[netip.Addr]string
}

func (l *ledgerOfUsage) pass(minutes int) {
	for range minutes {
		now := map[netip.Addr]string{}
		for addr, account := range l.has {
			now[addr] = account
		}
		l.minutes = append(l.minutes, now)
	}
}

// sums returns the hours of each account between two minutes, and its number of addresses.
func (l *ledgerOfUsage) sums(from, to int) (hours map[string]float64, addrs map[string]int) {
	hours, addrs = map[string]float64{}, map[string]int{}
	seen := map[string]map[netip.Addr]bool{}
	for _, minute := range l.minutes[from:to] {
		for addr, account := range minute {
			hours[account] += 1.0 / 60
			if seen[account] == nil {
				seen[account] = map[netip.Addr]bool{}
			}
			seen[account][addr] = true
			addrs[account] = len(seen[account])
		}
	}
	return hours, addrs
}

// TestUsageAsCounted: an account's hours equal a count made each minute, whatever is allocated, mapped, released
// and allocated again meanwhile (CS-10).
func TestUsageAsCounted(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := ipamtest.NewAt(t, "")
		began := r.Clock.Time
		edit := func(e ipam.Edit) bool {
			_, err := r.S.Edit(t.Context(), ipam.EditOptions{}, e)
			return err == nil
		}
		if !edit(&ipam.AddElasticRange{Range: ipamtest.MustRange("203.0.113.10+4")}) {
			rt.Fatal("no range")
		}
		model := ledgerOfUsage{has: map[netip.Addr]string{}}
		accounts := []string{"shop", "rival", ipam.DefaultAccount}
		at := func() netip.Addr {
			return addr("203.0.113.1" + rapid.SampledFrom([]string{"0", "1", "2", "3"}).Draw(rt, "ip"))
		}
		for range rapid.IntRange(1, 25).Draw(rt, "steps") {
			account := rapid.SampledFrom(accounts).Draw(rt, "account")
			switch rapid.IntRange(0, 5).Draw(rt, "what") {
			case 0:
				edit(&ipam.CreateAccount{Account: account})
			case 1:
				if edit(&ipam.RemoveAccount{Account: account, Force: true}) {
					for ip, whose := range model.has {
						if whose == account {
							delete(model.has, ip)
						}
					}
				}
			case 2, 3:
				if ip := at(); edit(&ipam.AllocateElastic{Account: account, Address: ip}) {
					model.has[ip] = account
				}
			case 4:
				if ip := at(); edit(&ipam.ReleaseElastic{Address: ip}) {
					delete(model.has, ip)
				}
			case 5:
				passes := rapid.IntRange(0, 90).Draw(rt, "minutes")
				model.pass(passes)
				r.Clock.Time = r.Clock.Time.Add(time.Duration(passes) * time.Minute)
			}
		}
		from := rapid.IntRange(0, len(model.minutes)).Draw(rt, "since")
		to := rapid.IntRange(from, len(model.minutes)).Draw(rt, "until")
		moment := func(minute int) time.Time { return began.Add(time.Duration(minute) * time.Minute) }
		got, err := r.S.Usage(t.Context(), ipam.UsageFilter{Since: moment(from), Until: moment(to)})
		ipamtest.Must(rt, err)
		hours, addrs := model.sums(from, to)
		for _, a := range got.Accounts {
			if a.Hours < 0.001 && hours[a.Account] == 0 {
				continue // events of one moment are a microsecond apart
			}
			if math.Abs(a.Hours-hours[a.Account]) > 0.001 || a.Addresses < addrs[a.Account] {
				rt.Errorf("account %s had %d addresses for %v hours, and not %d for %v", a.Account, a.Addresses, a.Hours,
					addrs[a.Account], hours[a.Account])
			}
			delete(hours, a.Account)
		}
		if len(hours) > 0 {
			rt.Errorf("the sums lack %v: %+v", hours, got)
		}
	})
}

// TestUsageOfForgottenEvents: if the events do not reach back as far as requested, the report says so. An
// address that an account still has counts from its allocation all the same (CS-10).
func TestUsageOfForgottenEvents(t *testing.T) {
	r := ipamtest.NewAt(t, "")
	began := r.Clock.Time
	_, err := r.S.Edit(t.Context(), ipam.EditOptions{},
		&ipam.AddElasticRange{Range: ipamtest.MustRange("203.0.113.10+4")},
		&ipam.AllocateElastic{}, &ipam.AllocateElastic{}, &ipam.CreateAccount{Account: "shop", Domain: "example.org"},
		&ipam.AllocateElastic{Account: "shop"})
	ipamtest.Must(t, err)
	r.Clock.Time = began.Add(10 * time.Hour)
	if _, err := r.S.Edit(t.Context(), ipam.EditOptions{}, &ipam.ReleaseElastic{Address: addr(next)}); err != nil {
		t.Fatal(err)
	}
	usage := func(f ipam.UsageFilter) ipam.UsageReport {
		t.Helper()
		report, err := r.S.Usage(t.Context(), f)
		ipamtest.Must(t, err)
		return report
	}
	hours := func(report ipam.UsageReport) map[string]float64 {
		sums := map[string]float64{}
		for _, a := range report.Accounts {
			sums[a.Account] = math.Round(a.Hours)
		}
		return sums
	}
	r.Clock.Time = began.Add(20 * time.Hour)
	all := usage(ipam.UsageFilter{})
	if got := hours(all); got["default"] != 30 || got["shop"] != 20 || !all.KnownSince.IsZero() {
		t.Errorf("with all events: %+v", all)
	}
	if len(all.Accounts) != 2 || all.Accounts[1].Domain != "example.org" || all.Accounts[0].Addresses != 2 {
		t.Errorf("the accounts are %+v", all.Accounts)
	}
	r.Clock.Time = began.Add(100 * 24 * time.Hour)
	if err := r.S.Trim(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := r.S.Edit(t.Context(), ipam.EditOptions{}, &ipam.AllocateElastic{}); err != nil {
		t.Fatal(err)
	}
	later := usage(ipam.UsageFilter{Since: began})
	if got := hours(later); got["default"] != 2400 || later.KnownSince.IsZero() || later.KnownSince.Before(began) {
		t.Errorf("with events of the last days only: %+v", later)
	}
	if one := usage(ipam.UsageFilter{}); !one.KnownSince.IsZero() {
		t.Errorf("what is known is all that was asked for: %+v", one)
	}
	_, err = r.S.Usage(t.Context(), ipam.UsageFilter{Since: began.Add(time.Hour), Until: began})
	if err == nil {
		t.Error("a time that ends before it begins is none")
	}
	own := ipam.WithAccount(context.WithoutCancel(t.Context()), "shop")
	if report, err := r.S.Usage(own, ipam.UsageFilter{}); err != nil || len(report.Accounts) != 1 ||
		report.Accounts[0].Account != "shop" {
		t.Errorf("who asks for shop is told %+v %v", report, err)
	}
}
