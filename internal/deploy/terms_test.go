package deploy

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"

	"github.com/google/go-cmp/cmp"
)

// serviceOf returns a service of a project as a deploy sees it.
func serviceOf(t *testing.T, text, name string) Service {
	t.Helper()
	plan, err := load(t, file(t, text)).Plan(Mapping{}, planned())
	fine(t, err)
	for _, s := range plan.Services() {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("there is no service %s", name)
	return Service{}
}

const onFront = "\nnetworks: {front: {ipam: {driver: berth, options: {network: front}, config: [{subnet: " +
	"10.8.0.0/24}]}}}\n"

// How a service is updated: key by key, its own settings override those that the file has for all, and these
// override Swarm's (BD-8).
func TestUpdate(t *testing.T) {
	// the settings at the top, those of the service, and the fields of its Update
	for row := range ipamtest.Rows(4, `
		silent | | | {1 1 {1s 1m0s} {1s 1m0s} false}
		a service's own | | x-berth: {update: {canaries: 2, max_in_flight: 3, canary_watch: 5s-2m, watch: 0s-10s, order: start-first}} | {2 3 {5s 2m0s} {0s 10s} true}
		the file's, and the service's over it | x-berth: {update: {canaries: 0, max_in_flight: 4}} | x-berth: {update: {max_in_flight: 2}} | {0 2 {1s 1m0s} {1s 1m0s} false}
		a part | | x-berth: {update: {max_in_flight: 25%}} | {1 2 {1s 1m0s} {1s 1m0s} false}
		a small part | | x-berth: {update: {max_in_flight: 1%}} | {1 1 {1s 1m0s} {1s 1m0s} false}
		milliseconds | | x-berth: {update: {watch: 1000-60000, canary_watch: '500 - 1500'}} | {1 1 {500ms 1.5s} {1s 1m0s} false}
		Swarm's | | deploy: {update_config: {parallelism: 5, monitor: 3s, order: start-first}} | {1 5 {3s 1m0s} {3s 1m0s} true}
		over Swarm's | x-berth: {update: {order: stop-first}} | x-berth: {update: {max_in_flight: 2}}, deploy: {update_config: {parallelism: 5, order: start-first}} | {1 2 {1s 1m0s} {1s 1m0s} false}
		out of a variable | | x-berth: {update: {canaries: '${N:-3}', max_in_flight: '${M:-50%}'}} | {3 4 {1s 1m0s} {1s 1m0s} false}
	`) {
		t.Run(row[0], func(t *testing.T) {
			text := fmt.Sprintf("%s\nservices: {web: {image: x, scale: 8, networks: [front], %s}}%s", row[1], row[2],
				onFront)
			got := serviceOf(t, text, "web")
			if text := fmt.Sprint(got.Update); text != row[3] {
				t.Errorf("it is %s, want %s", text, row[3])
			}
		})
	}
}

// Workers and hooks, of a service and for all, with their timeouts.
func TestHooks(t *testing.T) {
	const text = `
x-berth:
  drain: {command: [drain, now]}
  worker: true
services:
  job: {image: x, networks: [front], x-berth: {snapshot: {command: [/bin/snap], timeout: 90s}}}
  web: {image: x, networks: [front], x-berth: {worker: false, drain: {command: [leave], timeout: 5s}}}` + onFront
	job, web := serviceOf(t, text, "job"), serviceOf(t, text, "web")
	want := Service{Worker: true, Drain: &Hook{[]string{"drain", "now"}, 30 * time.Second},
		Snapshot: &Hook{[]string{"/bin/snap"}, 90 * time.Second}}
	if diff := cmp.Diff(want, Service{Worker: job.Worker, Drain: job.Drain, Snapshot: job.Snapshot}); diff != "" {
		t.Error(diff)
	}
	want = Service{Drain: &Hook{[]string{"leave"}, 5 * time.Second}}
	if diff := cmp.Diff(want, Service{Worker: web.Worker, Drain: web.Drain, Snapshot: web.Snapshot}); diff != "" {
		t.Error(diff)
	}
}

// How many workers run at once: one, or the number at the top of the file. It cannot be set elsewhere (BD-11).
func TestWorkersAtOnce(t *testing.T) {
	const services = "\nservices: {web: {image: x, networks: [front]}}" + onFront
	for says, want := range map[string]int{"": 1, "x-berth: {workers: 4}": 4, "x-berth: {workers: '${N:-3}'}": 3} {
		plan, err := load(t, file(t, says+services)).Plan(Mapping{}, planned())
		if err != nil || plan.Workers() != want {
			t.Errorf("%q: %d, %v; want %d", says, plan.Workers(), err, want)
		}
	}
	source := file(t, `x-berth: {workers: 0}
services:
  web: {image: x, networks: [front], x-berth: {workers: 2}}`+onFront)
	_, err := load(t, source).Plan(Mapping{}, planned())
	for i, want := range []string{"1: x-berth.workers is 0; write a number from 1 to ",
		"3: services.web.x-berth.workers is the number of workers that run at once; write it in the x-berth at the " +
			"top of the"} {
		if got := each(err); len(got) != 2 || !strings.HasPrefix(got[i].Error(), source.Files[0]+":"+want) {
			t.Errorf("it says %v; want %q", err, want)
		}
	}
}

// BD-2: all that is wrong in what the files say to Berth is reported at once, each problem with its file and line,
// in file order.
func TestTermsRefused(t *testing.T) {
	source := file(t, `x-berth:
  update: {canarys: 1}
  addresses: [10.8.0.5]
services:
  web:
    image: x
    scale: 3
    networks: [front, dual]
    x-berth:
      update:
        max_in_flight: 0
        canaries: -1
        watch: 60s-1s
        canary_watch: 60s
        order: parallel
      addresses:
        - 10.8.0.10
        - 10.99.0.11
        - 10.8.0.10
        - 10.8.0
        - fd00:9::7
      worker: perhaps
      drain: {timeout: 5s}
      snapshot: {command: snap, timeout: soon}
      elastic: 203.0.113.5
      colour: red
  db:
    image: x
    networks: {front: {ipv4_address: 10.8.0.77}}
    x-berth: &db
      egress_only: true
      addresses: [10.8.0.78]
  job: {image: x, networks: [front], x-berth: 7}
networks:
  front: {ipam: {driver: berth, options: {network: front}, config: [{subnet: 10.8.0.0/24}]}}
  dual: {enable_ipv6: true, ipam: {driver: berth, options: {network: dual}}}
  back: {ipam: {driver: berth, options: {network: nowhere}}}
`)
	_, err := load(t, source).Plan(Mapping{}, planned())
	want := []string{
		"2: x-berth.update.canarys is not a known key; update can have canaries, canary_watch, max_in_flight, " +
			"order and watch",
		"3: x-berth.addresses are for the replicas of one service; write them in the x-berth of that service",
		"11: services.web.x-berth.update.max_in_flight is 0; write a number of replicas, or a part",
		"12: services.web.x-berth.update.canaries is -1; write a number from 0",
		"13: services.web.x-berth.update.watch is 60s-1s; write the least and the most, such as 1s-60s",
		"14: services.web.x-berth.update.canary_watch is 60s",
		"15: services.web.x-berth.update.order is parallel; write stop-first or start-first",
		"16: services.web.x-berth.addresses gives 1 IPv6 addresses on networks.dual, and services.web has 3 replicas",
		"16: services.web.x-berth.addresses gives 2 IPv4 addresses on networks.front, and services.web has 3 replicas",
		"18: services.web.x-berth.addresses[1] is 10.99.0.11, which is in no subnet of the networks of " +
			"services.web; they have 10.9.0.0/24 (dual), fd00:9::/64 (dual), 10.8.0.0/24 (front)",
		"19: services.web.x-berth.addresses[2] is 10.8.0.10, which is in the list already",
		"20: services.web.x-berth.addresses[3] is 10.8.0; write an IPv4 or an IPv6 address",
		"22: services.web.x-berth.worker is perhaps; write true or false",
		"23: services.web.x-berth.drain has no command",
		"24: services.web.x-berth.snapshot.command is snap; write a list of words",
		"24: services.web.x-berth.snapshot.timeout is soon",
		"25: services.web.x-berth.elastic is one address, but services.web has 3 replicas",
		"25: services.web.x-berth.elastic: services.web is on the networks dual and front, which both have elastic",
		"26: services.web.x-berth.colour is not a known key; x-berth can have addresses, drain, egress_only, " +
			"elastic, snapshot, update, worker and workers",
		"31: services.db.x-berth.egress_only needs an elastic address, but services.db has none",
		"32: services.db.x-berth.addresses gives an IPv4 address on networks.front, and " +
			"services.db.networks.front.ipv4_address gives another",
		"33: services.job.x-berth is not a mapping; write a mapping with the keys addresses",
	}
	got := each(err)
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(want):
			t.Errorf("besides there is: %v", got[i])
		case i >= len(got):
			t.Errorf("it is not said that %s", want[i])
		case !strings.HasPrefix(got[i].Error(), source.Files[0]+":"+want[i]):
			t.Errorf("problem %d is\n%v\nwant\n%s", i, got[i], want[i])
		}
	}
}

// Each replica reserves one of the addresses, in both families alike, and the override of `berth compose` says the
// same.
func TestAddressesOfReplicas(t *testing.T) {
	source := file(t, `
services:
  web:
    image: x
    scale: 2
    networks: [dual]
    x-berth: {addresses: [10.9.0.21, 'fd00:9::21', 10.9.0.22, 'fd00:9::22']}
  db:
    image: x
    networks: [dual]
    x-berth: {addresses: [10.9.0.30]}
networks:
  dual: {enable_ipv6: true, ipam: {driver: berth, options: {network: dual}}}
`)
	plan, err := load(t, source).Plan(Mapping{}, planned())
	fine(t, err)
	wishes := map[string]string{}
	for _, e := range plan.Edits() {
		add := e.(*ipam.AddReservation)
		for _, w := range add.Wishes {
			wishes[add.Owner] += fmt.Sprintf("%d %v %s; ", w.Slot, w.Address, w.Subnet)
		}
	}
	want := map[string]string{
		"shop/web/1": "0 10.9.0.21 ; 1 fd00:9::21 ; ", "shop/web/2": "0 10.9.0.22 ; 1 fd00:9::22 ; ",
		"shop/db/1": "0 10.9.0.30 ; 1 invalid IP fd00:9::/64; "}
	if diff := cmp.Diff(want, wishes); diff != "" {
		t.Error(diff)
	}
	fine(t, plan.Grant(newLedger().edit(plan.Edits())))
	text, err := plan.Override()
	fine(t, err)
	for _, said := range []string{"shop/web/2 on dual: 10.9.0.22, fd00:9::22", `ipv4_address: "10.9.0.30"`} {
		if !strings.Contains(string(text), said) {
			t.Errorf("the override does not say %s:\n%s", said, text)
		}
	}
	for _, s := range plan.Services() {
		for _, one := range s.Instances {
			if s.Name == "web" && !one.On[0].has(netip.MustParseAddr(fmt.Sprintf("10.9.0.2%d", one.Number))) {
				t.Errorf("%s has %v", one.Owner, one.On)
			}
		}
	}
}

func (p *Place) has(addr netip.Addr) bool {
	for _, a := range p.Addresses {
		if a == addr {
			return true
		}
	}
	return false
}

// An address that the files give to two services is reported at the second place. No report says that somebody
// holds it.
func TestGivenTwice(t *testing.T) {
	source := file(t, `
services:
  a: {image: x, networks: {front: {ipv4_address: 10.8.0.9}}}
  b: {image: x, scale: 2, networks: [front], x-berth: {addresses: [10.8.0.8, 10.8.0.9]}}`+onFront)
	plan, err := load(t, source).Plan(Mapping{}, planned())
	want := fmt.Sprintf("%s:4: the files give 10.8.0.9 to services.b, and to services.a at %s:3", source.Files[0],
		source.Files[0])
	if err == nil || !strings.HasPrefix(err.Error(), want) || len(each(err)) != 1 {
		t.Errorf("got %v, want %s", err, want)
	}
	if got := strings.Join(owners(plan.Edits()), " "); got != "shop/a/1 shop/b/1" {
		t.Errorf("what is right is %s", got)
	}
}

// Start-first is refused if two containers of a replica would conflict, whichever setting asks for it.
func TestStartFirstRefused(t *testing.T) {
	const bare = "\nnetworks: {front: {ipam: {driver: berth, options: {network: front}}}}\n"
	// what the service says, the networks and volumes, and the refusal
	for row := range ipamtest.Rows(4, `
		a name | container_name: box, networks: [front] | FRONT | has the container_name box
		a port | ports: ['8080:80', '81'], networks: [front] | FRONT | publishes the port 8080 of the host
		an address | networks: {front: {ipv4_address: 10.8.0.9}} | FRONT | has static addresses
		dealt addresses | scale: 2, networks: [front], x-berth: {addresses: [10.8.0.8, 10.8.0.9]} | FRONT | has static addresses
		a volume | volumes: ['data:/data'], networks: [front] | FRONT DATA | has one replica with the volume data
		subnets that are not named | networks: [front] | BARE | write config: [{subnet: 10.8.0.0/24}] in its ipam
		replicas with a volume | scale: 2, volumes: ['data:/data'], networks: [front] | FRONT DATA |
		a port of no host | ports: ['81'], networks: [front] | FRONT |
		a worker | container_name: box, networks: [front], x-berth: {worker: true} | FRONT |
		which does not say so | container_name: box, networks: [front], x-berth: {update: {order: stop-first}} | FRONT |
	`) {
		networks := strings.NewReplacer("FRONT", onFront, "BARE", bare, "DATA", "\nvolumes: {data: {}}").Replace(row[2])
		for says, line := range map[string]int{"\nx-berth: {update: {order: start-first}}": 2, "": 3} {
			service := row[1]
			if says == "" {
				service += ", deploy: {update_config: {order: start-first}}"
			}
			t.Run(fmt.Sprint(row[0], line), func(t *testing.T) {
				source := file(t, fmt.Sprintf("%s\nservices:\n  web: {image: x, %s}%s", says, service, networks))
				plan, err := load(t, source).Plan(Mapping{}, planned())
				fine(t, err)
				err = plan.Check()
				if row[3] == "" {
					if err != nil {
						t.Errorf("it is refused: %v", err)
					}
					return
				}
				at := fmt.Sprintf("%s:%d: ", source.Files[0], line)
				if err == nil || !strings.HasPrefix(err.Error(), at) || !strings.Contains(err.Error(), row[3]) {
					t.Errorf("got %v, want %s...%s", err, at, row[3])
				}
			})
		}
	}
}
