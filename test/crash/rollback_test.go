package crash

import (
	"flag"
	"math/rand/v2"
	"net"
	"net/netip"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"berth/internal/admin/client"
	"berth/internal/ipam"
	"berth/test/lab"
)

var rollbacks = flag.Int("rollbacks", 10,
	"how often TestRollback kills the daemon and puts an older state in its place")

// rolled is the subnet of TestRollback.
var rolled = netip.MustParsePrefix("10.9.0.0/22")

// TestRollback kills the daemon under load and restores a slightly older backup: later leases are missing, later
// releases are undone. The engine's view repairs both, and no address of a running holder is given twice, however
// many callers ask (invariant 1, BO-1).
func TestRollback(t *testing.T) {
	random := rand.New(rand.NewPCG(drawnSeed(t), 1))
	begin := time.Now()
	p := newPlace(t)
	p.flags = []string{"--docker-host", "none", "--check-every", "0", "--check-grace", "1ms", "--log-level", "warning"}
	r := &rollback{ledger: newLedger(p), seen: time.Now(), older: filepath.Join(p.dir, "older")}
	r.onePool = true
	d := p.start()
	shared, err := r.attach(rolled.String(), map[string]string{"sticky": "off"})
	lab.Must(t, err)
	for round := range sample(*rollbacks) {
		r.backUpUnderLoad(d, shared.id, random)
		r.forgetUnanswered()
		r.restore()
		d = p.start()
		r.notice()
		r.repair()
		r.hold()
		r.askedByStrangers(shared.id)
		d.fsck()
		if t.Failed() {
			t.Fatalf("in round %d of -seed %d; the log of the last life:\n%s", round+1, *seed, d.Log())
		}
		r.settle()
	}
	d.Stop(d.t)
	if r.lost == 0 || r.back == 0 {
		t.Errorf("nothing was rolled back: %d leases lost, %d back", r.lost, r.back)
	}
	t.Logf("%d rollbacks in %s: %d leases of what runs were lost, %d of what does not were back, "+
		"%d of those for another that runs; 0 doubled among what runs", sample(*rollbacks),
		time.Since(begin).Round(time.Millisecond), r.lost, r.back, r.mixed)
}

// rollback is a ledger whose holders run, according to the engine.
type rollback struct {
	*ledger
	older string    // the backup
	seen  time.Time // time of the last look at the engine
	lost  int       // leases of running holders that the older state lacked
	back  int       // leases in the older state whose holders no longer run
	mixed int       // addresses of running holders that stayed leased to an ended one
}

// backUpUnderLoad lets callers work, makes a backup meanwhile, and kills the daemon soon after.
func (r *rollback) backUpUnderLoad(d *daemon, shared string, random *rand.Rand) {
	r.t.Helper()
	stop := make(chan struct{})
	heard := func() {
		select {
		case <-r.wake:
		case <-time.After(patience):
			r.t.Errorf("the callers hear nothing:\n%s", d.Log())
		}
	}
	r.wakeAfter(1 + random.IntN(300))
	wait := work(r.ledger, shared, random.Uint64(), stop)
	heard()
	r.berth("state", "backup", r.older, "--force", "--admin-socket", r.admin())
	r.wakeAfter(1 + random.IntN(300))
	heard()
	d.Kill()
	close(stop)
	wait()
}

// forgetUnanswered forgets holders with an unfinished take or release: the engine has no endpoint for them.
func (r *rollback) forgetUnanswered() {
	for mac, le := range r.open {
		if le.addr == "" || le.released {
			delete(r.open, mac)
		}
	}
}

// berth runs a command that must succeed.
func (r *rollback) berth(words ...string) {
	r.t.Helper()
	if out, err := exec.Command(program, words...).CombinedOutput(); err != nil {
		r.t.Fatalf("berth %s: %v\n%s", strings.Join(words, " "), err, out)
	}
}

// restore restores the backup as a user does.
func (r *rollback) restore() {
	r.t.Helper()
	r.berth("state", "restore", r.older, "--state", r.state(), "--force")
}

// leases are the daemon's leases in the subnet, by address.
func (r *rollback) leases() map[string]string {
	r.t.Helper()
	c := client.New(r.admin())
	defer c.Close()
	all, err := c.Leases(r.t.Context(), ipam.LeaseFilter{Space: r.space, Subnet: rolled})
	lab.Must(r.t, err)
	held := map[string]string{}
	for _, l := range all {
		if l.Kind != ipam.Gateway {
			held[l.Address.String()] = l.MAC.String()
		}
	}
	return held
}

// notice counts the differences between the older state and what runs.
func (r *rollback) notice() {
	r.t.Helper()
	has := r.leases()
	for addr, le := range r.holder {
		if has[addr] != le.mac {
			r.lost++
		}
	}
	for addr, mac := range has {
		if le := r.holder[addr]; le == nil || le.mac != mac {
			r.back++
		}
	}
}

// repair compares the records with what runs until they agree, as `berth check --repair` does.
func (r *rollback) repair() {
	r.t.Helper()
	c := client.New(r.admin())
	defer c.Close()
	var report ipam.CheckReport
	for range 5 {
		view := r.view()
		var err error
		if report, err = c.Check(r.t.Context(), ipam.CheckRequest{Repair: true, View: &view}); err != nil {
			r.t.Fatal(err)
		}
		if r.agrees() {
			return
		}
	}
	r.t.Errorf("the records are not put right: %+v", report)
}

// agrees reports whether exactly the running holders have leases.
func (r *rollback) agrees() bool {
	has := r.leases()
	for addr := range r.holder {
		if has[addr] == "" {
			return false
		}
	}
	return len(has) == len(r.holder)
}

// view is the engine's view of what runs.
func (r *rollback) view() ipam.EngineView {
	r.t.Helper()
	const network = "0123456789abcdef"
	for !time.Now().After(r.seen.Add(time.Millisecond)) {
		time.Sleep(time.Millisecond) // two views must be of different moments, the grace apart
	}
	r.seen = time.Now()
	v := ipam.EngineView{Host: "alpha", Engine: "engine", Taken: r.seen,
		Networks: []ipam.EngineNetwork{{ID: network, Name: "rolled",
			Driver: "berth", Subnets: []ipam.EngineSubnet{{CIDR: rolled}}}}}
	for addr, le := range r.holder {
		mac, err := net.ParseMAC(le.mac)
		lab.Must(r.t, err)
		n := strings.ReplaceAll(le.mac, ":", "")
		v.Containers = append(v.Containers,
			ipam.EngineContainer{ID: n, Name: "c" + n, State: "running", Endpoints: []ipam.EngineEndpoint{
				{Network: network, ID: "e" + n, MAC: ipam.MAC(mac),
					Addresses: []netip.Addr{netip.MustParseAddr(addr)}}}})
	}
	return v
}

// hold fails the test if the address of a running holder has no lease, or the lease of another running one. If the
// older state leases the address to an ended holder, the check names both, and the lease stays until the running
// one releases the address.
func (r *rollback) hold() {
	r.t.Helper()
	has := r.leases()
	runs := map[string]bool{}
	for _, le := range r.holder {
		runs[le.mac] = true
	}
	for addr, le := range r.holder {
		switch mac := has[addr]; {
		case mac == "", mac != le.mac && runs[mac]:
			r.t.Errorf("LOST: %s of %s is held by %q", addr, le.mac, mac)
		case mac != le.mac:
			r.mixed++
		}
	}
}

// askedByStrangers requests addresses under new names. Berth refuses each running address, and gives only others.
func (r *rollback) askedByStrangers(pool string) {
	r.t.Helper()
	var running []string
	for addr := range r.holder {
		running = append(running, addr)
	}
	slices.Sort(running)
	var given []*lease
	for _, addr := range append(running, make([]string, 50)...) { // and 50 times any address
		le, err := r.take(pool, addr)
		text, answered := refused(err)
		switch {
		case err == nil:
			given = append(given, le) // took has checked that it is not doubled
		case !answered || addr == "":
			r.t.Errorf("a stranger asks for %q: %v", addr, err)
		case !strings.Contains(text, "held by"):
			r.t.Errorf("a stranger asks for %s, and is refused with: %s", addr, text)
		}
	}
	for _, le := range given {
		r.mustGive(le)
	}
}

// drawnSeed is the -seed flag, or a new random seed.
func drawnSeed(t *testing.T) uint64 {
	t.Helper()
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	t.Logf("-seed %d", *seed)
	return *seed
}
