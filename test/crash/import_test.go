package crash

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"berth/internal/admin/client"
	"berth/test/lab"
)

// networksIn, subnetsIn and reservedIn are the size of the imported plan.
const (
	networksIn = 20
	subnetsIn  = 10
	reservedIn = 100 // in each subnet, as a maximum
)

// reserved is the number of reservations in each subnet: fewer under -short, but enough that an import is cut off.
func reserved() int {
	if testing.Short() {
		return reservedIn * 2 / 5
	}
	return reservedIn
}

// planDocument is the plan of new networks and of one that exists.
func planDocument(space string, reserved int) []byte {
	var b bytes.Buffer
	b.WriteString("version: 1\nnetworks:\n")
	for n := range networksIn {
		fmt.Fprintf(&b, "- name: plan%02d\n  space: %s\n  subnets:\n", n, space)
		for s := range subnetsIn {
			fmt.Fprintf(&b, "  - {cidr: 10.%d.%d.0/24, gateway: 10.%d.%d.1, pool: true}\n", 200+n, s, 200+n, s)
		}
		b.WriteString("  reservations:\n")
		for s := range subnetsIn {
			for r := range reserved {
				fmt.Fprintf(&b, "  - {owner: web-%d-%d, address: 10.%d.%d.%d}\n", s, r, 200+n, s, r+2)
			}
		}
	}
	fmt.Fprintf(&b, "- name: there\n  space: %s\n  subnets:\n  - {cidr: 198.51.100.0/24, name: new}\n  "+
		"reservations:\n  - {owner: web, address: 192.0.2.77}\n", space)
	return b.Bytes()
}

// berth runs a command on the daemon's socket.
func (p *place) berth(args ...string) (string, error) {
	out, err := exec.Command(program, append(args, "--admin-socket", p.admin())...).CombinedOutput()
	return string(out), err
}

func (p *place) mustBerth(args ...string) string {
	p.t.Helper()
	out, err := p.berth(args...)
	if err != nil {
		p.t.Fatalf("berth %v: %v\n%s", args, err, out)
	}
	return out
}

// wholeNetworks fails the test if a network of the plan is visible in part, and counts those that exist. It
// returns false if the daemon does not answer.
func (p *place) wholeNetworks(c *client.Client) (there int, ok bool) {
	all, err := c.Networks(p.t.Context(), "")
	if err != nil {
		return 0, false
	}
	for _, n := range all {
		if !strings.HasPrefix(n.Name, "plan") {
			continue
		}
		there++
		if len(n.Subnets) != subnetsIn || n.Use.Reserved != uint64(subnetsIn*p.reserved) || n.Use.Leased != subnetsIn {
			p.t.Errorf("network %s is seen in part: %d subnets, %d reserved, %d held", n.Name, len(n.Subnets),
				n.Use.Reserved, n.Use.Leased)
		}
	}
	return there, true
}

// TestImportKilled kills the daemon during an import, while callers take and release, and again during a repeat of
// the same import. A network is never visible in part. The third import ends, or has ended.
func TestImportKilled(t *testing.T) {
	overBolt(t, importKilled)
	overEtcd(t, importKilled)
}

func importKilled(t *testing.T, p *place) {
	random := rand.New(rand.NewPCG(7, 7))
	file := filepath.Join(p.dir, "plan.yaml")
	lab.Must(t, os.WriteFile(file, planDocument(p.space, p.reserved), 0o600))
	l := newLedger(p)
	d := p.start()
	p.mustBerth("network", "create", "there", "--space", p.space, "--subnet", "192.0.2.0/24")
	shared, err := l.attach("10.9.0.0/22", nil)
	lab.Must(t, err)
	d, cut := p.killedIn(l, d, shared.id, random, 1, "plan", "import", file)
	if !cut {
		t.Fatal("the import was not cut off")
	}
	// If it was already over, only its answer is lost.
	d, _ = p.killedIn(l, d, shared.id, random, networksIn/2, "plan", "import", file)
	p.mustBerth("plan", "import", file)
	if out := p.mustBerth("plan", "import", file); !strings.HasPrefix(out, "added nothing; ") {
		t.Errorf("imported again it says: %s", out)
	}
	c := client.New(p.admin())
	defer c.Close()
	if there, ok := p.wholeNetworks(c); !ok || there != networksIn {
		t.Errorf("%d networks are there", there)
	}
	l.verify()
	d.fsck()
	d.Stop(d.t)
}

// killedIn runs an import while callers work, kills the daemon once n of its networks exist, and starts the daemon
// again. It returns whether this cut the command off.
func (p *place) killedIn(l *ledger, d *daemon, shared string, random *rand.Rand, networks int,
	args ...string) (next *daemon, cut bool) {
	p.t.Helper()
	stop := make(chan struct{})
	wait := work(l, shared, random.Uint64(), stop)
	c := client.New(p.admin())
	defer c.Close()
	ended := make(chan struct{})
	var err error
	go func() {
		_, err = p.berth(args...)
		close(ended)
	}()
	p.watch(c, d, networks, ended)
	d.Kill()
	close(stop)
	wait()
	<-ended
	d = p.start()
	if _, ok := p.wholeNetworks(c); !ok {
		p.t.Error("the daemon does not list its networks")
	}
	d.fsck()
	return d, err != nil
}

// watch polls the networks until n of an import exist, or its command has ended.
func (p *place) watch(c *client.Client, d *daemon, networks int, ended <-chan struct{}) {
	p.t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		there, ok := p.wholeNetworks(c)
		if !ok {
			p.t.Errorf("the networks are not listed:\n%s", d.Log())
			return
		}
		select {
		case <-ended:
			return
		default:
		}
		if there >= networks {
			return
		}
	}
	p.t.Error("the import does not get on")
}
