package compare_test

import (
	"fmt"
	"strings"
	"testing"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
	"berth/internal/plan"
	"berth/internal/plan/compare"
)

// everySetting is a document with a value other than the default in each key that has one.
const everySetting = `version: 1
networks:
  - name: front
    space: lab
    mac_prefix: aa:00:00
    sticky: false
    quarantine: 10m
    headroom: 5
    elastic: "on"
    probe: eth0
    put_back: reserved
    note: network
    subnets:
      - cidr: 10.0.0.0/24
        name: lan
        gateway: 10.0.0.1
        gateway_note: router
        note: subnet
        pools: [{range: 10.0.0.8/29, name: web}]
        exclusions: [{range: 10.0.0.32/28, note: printers}]
    reservations:
      - {owner: db, address: 10.0.0.20, automatic: true, until: 2099-05-01T18:00:00Z, note: reservation}
    addresses:
      - {owner: rtr, address: 10.0.0.2, note: address}
  - name: wifi
    space: lab
    type: dynamic
    subnets:
      - {cidr: 10.0.1.0/24, dhcp: true, dhcp_parent: eth0, dhcp_id: mac}
elastic:
  accounts:
    - {name: shop, domain: example.org, quota: 4}
  ranges:
    - {range: 203.0.113.0/28, host: alpha, announce: lo, ttl: 3s, on_cut: keep}
  addresses:
    - {address: 203.0.113.3, account: shop, instance: db, egress_only: true, release_on: stop}
`

// A key that a document writes with its default, or without a value, resets the setting. A key that the document
// leaves out stays, and only --prune resets it.
func TestDefaults(t *testing.T) {
	read := func(t *testing.T, document string) *ipam.Plan {
		p, err := plan.ReadYAML(strings.NewReader(document))
		if err != nil {
			t.Fatal(err)
		}
		return &p
	}
	names := strings.NewReplacer("FRONT ", "~ network front, ", "SUBNET ", "~ subnet 10.0.0.0/24 of front, ",
		"DB ", "~ reservation db of front, ", "WIFI ", "~ subnet 10.0.1.0/24 of wifi, ",
		"ELASTIC ", "~ elastic address 203.0.113.3, ")
	// what is written, what resets it (empty: only no value), and the change
	for row := range ipamtest.Rows(3, `
		mac_prefix: aa:00:00 | mac_prefix: "" | FRONT mac_prefix: aa:00:00 -> none
		sticky: false | sticky: true | FRONT sticky: false -> true
		quarantine: 10m | quarantine: 0s | FRONT quarantine: 10m -> 0s
		headroom: 5 | headroom: 0 | FRONT headroom: 5 -> 0
		elastic: "on" | elastic: off | FRONT elastic: on -> off
		probe: eth0 | probe: "" | FRONT probe: eth0 -> none
		put_back: reserved | put_back: default | FRONT put_back: reserved -> default
		note: network | note: "" | FRONT note: network -> none
		name: lan | name: "" | SUBNET name: lan -> none
		gateway: 10.0.0.1 |  | SUBNET gateway: 10.0.0.1 -> none
		gateway_note: router | gateway_note: "" | SUBNET gateway_note: router -> none
		note: subnet | note: "" | SUBNET note: subnet -> none
		name: web | name: "" | ~ pool 10.0.0.8/29 of front, name: web -> none
		note: printers | note: "" | ~ exclusion 10.0.0.32/28 of front, note: printers -> none
		automatic: true | automatic: false | DB automatic: true -> false
		until: 2099-05-01T18:00:00Z |  | DB until: 2099-05-01T18:00:00Z -> none
		note: reservation | note: "" | DB note: reservation -> none
		note: address | note: "" | ~ address rtr of front, note: address -> none
		dhcp_parent: eth0 | dhcp_parent: "" | WIFI dhcp_parent: eth0 -> none
		dhcp_id: mac | dhcp_id: owner | WIFI dhcp_id: mac -> owner
		domain: example.org | domain: "" | ~ account shop, domain: example.org -> none
		quota: 4 |  | ~ account shop, quota: 4 -> none
		host: alpha | host: "" | ~ elastic range 203.0.113.0/28, host: alpha -> none
		announce: lo | announce: none | ~ elastic range 203.0.113.0/28, announce: lo -> none
		on_cut: keep | on_cut: withdraw | ~ elastic range 203.0.113.0/28, on_cut: keep -> withdraw
		egress_only: true | egress_only: false | ELASTIC egress_only: true -> false
		release_on: stop | release_on: never | ELASTIC release_on: stop -> never
	`) {
		written, back, change := row[0], row[1], names.Replace(row[2])
		key, _, _ := strings.Cut(written, ":")
		changes := func(instead string, prune bool) string {
			if strings.Count(everySetting, written) != 1 {
				t.Fatalf("%q stands %d times in the document", written, strings.Count(everySetting, written))
			}
			document := strings.Replace(everySetting, written, instead, 1)
			if instead == "" { // remove the whole key, from a mapping in block or flow style
				for _, with := range []string{"        " + written + "\n", "    " + written + "\n", ", " + written,
					written + ", "} {
					document = strings.Replace(everySetting, with, "", 1)
					if document != everySetting {
						break
					}
				}
			}
			d, err := compare.Plans(read(t, document), read(t, everySetting), compare.Options{Prune: prune})
			if err != nil {
				t.Fatal(err)
			}
			var lines []string
			for _, one := range d.Changes {
				lines = append(lines, one.String())
			}
			if len(lines) > 0 && len(d.Parts) == 0 {
				t.Errorf("%s: no edit makes %q", instead, lines)
			}
			return strings.Join(lines, "\n")
		}
		t.Run(fmt.Sprintf("%s %s", strings.Fields(change)[1], written), func(t *testing.T) {
			if back != "" {
				if got := changes(back, false); got != change {
					t.Errorf("%s: %q", back, got)
				}
			}
			if got := changes(key+": ", false); got != change {
				t.Errorf("no value: %q", got)
			}
			if got := changes("", false); got != "" {
				t.Errorf("left out: %q", got)
			}
			if got := changes("", true); got != change {
				t.Errorf("left out, with --prune: %q", got)
			}
		})
	}
}
