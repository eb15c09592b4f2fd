package driver

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	api "github.com/docker/go-plugins-helpers/ipam"

	"berth/internal/ipam/ipamtest"
)

// step is what a client does to one subnet. Pools are named by their number in the history.
type step struct {
	kind string // attach, detach, take, give
	cidr string
	pool string
	addr string // take: the requested address, or "" for any; give: the released one
	mac  int
}

type outcome struct {
	refused string
	pool    string // attach
	addr    string // take
}

// held is one subnet in the model: which holder has which address through which pool. A released pool stays in gone.
type held struct {
	pools string // sorted ids, each followed by a comma
	by    string // "address pool mac" lines, sorted
}

// subnetModel models one subnet by the invariants of design.md. An address has at most one holder, and a second request
// with the same pool and MAC is another holder. Releases succeed, and free only what was taken through the pool. A
// released pool gives nothing.
func subnetModel(size int) porcupine.Model {
	return porcupine.Model{
		Partition: func(all []porcupine.Operation) [][]porcupine.Operation {
			parts := map[string][]porcupine.Operation{}
			for _, op := range all {
				cidr := op.Input.(step).cidr
				parts[cidr] = append(parts[cidr], op)
			}
			var list [][]porcupine.Operation
			for _, part := range parts {
				list = append(list, part)
			}
			return list
		},
		Init: func() any { return held{} },
		Step: func(state, input, output any) (bool, any) {
			// On a busy machine a host may wait too long for its cluster. Then it refuses and takes nothing.
			if refused := output.(outcome).refused; overTwo &&
				strings.Contains(refused, "the shared store has been out of reach") {
				return true, state
			}
			return state.(held).step(input.(step), output.(outcome), size)
		},
		DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v -> %+v", input, output) },
		DescribeState:     func(state any) string { return fmt.Sprintf("%+v", state) },
	}
}

func (h held) step(in step, out outcome, size int) (bool, held) {
	switch in.kind {
	case "attach":
		ids := append(h.ids(), out.pool)
		slices.Sort(ids)
		return out.refused == "", held{strings.Join(ids, ","), h.by}
	case "detach":
		ids := slices.DeleteFunc(h.ids(), func(id string) bool { return id == in.pool })
		left := slices.DeleteFunc(h.lines(), func(line string) bool { return strings.Fields(line)[1] == in.pool })
		return out.refused == "", held{strings.Join(ids, ","), strings.Join(left, "\n")}
	case "give":
		left := slices.DeleteFunc(h.lines(), func(line string) bool {
			f := strings.Fields(line)
			return f[0] == in.addr && f[1] == in.pool
		})
		return out.refused == "", held{h.pools, strings.Join(left, "\n")}
	default:
		return h.take(in, out, size)
	}
}

func (h held) take(in step, out outcome, size int) (bool, held) {
	lines := h.lines()
	mine := fmt.Sprintf("%s %d", in.pool, in.mac)
	holder := map[string]string{}
	for _, line := range lines {
		addr, who, _ := strings.Cut(line, " ")
		holder[addr] = who
	}
	there := slices.Contains(h.ids(), in.pool)
	if out.refused != "" {
		switch {
		case !there:
			return strings.Contains(out.refused, "released"), h
		case in.addr != "":
			return holder[in.addr] != "" && strings.Contains(out.refused, "held by"), h
		default:
			return len(lines) == size && strings.Contains(out.refused, "no address is free"), h
		}
	}
	switch {
	case !there, in.addr != "" && out.addr != in.addr:
		return false, h
	case holder[out.addr] != "":
		return false, h
	}
	lines = append(lines, out.addr+" "+mine)
	slices.Sort(lines)
	return true, held{h.pools, strings.Join(lines, "\n")}
}

func (h held) ids() []string   { return split(h.pools, ",") }
func (h held) lines() []string { return split(h.by, "\n") }

func split(s, sep string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, sep)
}

// history records the calls of many clients and their answers.
type history struct {
	handler http.Handler
	begin   time.Time
	mu      sync.Mutex
	ops     []porcupine.Operation
}

// do makes one call and records it.
func (h *history) do(t *testing.T, client int, in step) outcome {
	method, body := in.message(t)
	called := time.Since(h.begin)
	status, reply := post(h.handler, method, body)
	returned := time.Since(h.begin)
	out := outcome{}
	var msg struct{ PoolID, Address, Err string }
	if err := json.Unmarshal([]byte(reply), &msg); err != nil {
		t.Errorf("%s: %q", method, reply)
	}
	if status != http.StatusOK {
		out.refused = cmp.Or(msg.Err, "without a word")
	}
	out.pool = msg.PoolID
	if p, err := netip.ParsePrefix(msg.Address); err == nil {
		out.addr = p.Addr().String()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops = append(h.ops, porcupine.Operation{ClientId: client, Input: in, Output: out, Call: called.Nanoseconds(),
		Return: returned.Nanoseconds()})
	return out
}

func (in step) message(t *testing.T) (method, body string) {
	switch in.kind {
	case "attach":
		return "IpamDriver.RequestPool", encode(t, api.RequestPoolRequest{AddressSpace: "local", Pool: in.cidr})
	case "detach":
		return "IpamDriver.ReleasePool", encode(t, api.ReleasePoolRequest{PoolID: in.pool})
	case "give":
		return "IpamDriver.ReleaseAddress", encode(t, api.ReleaseAddressRequest{PoolID: in.pool, Address: in.addr})
	default:
		return "IpamDriver.RequestAddress",
			encode(t, api.RequestAddressRequest{PoolID: in.pool, Address: in.addr, Options: mac(in.mac)})
	}
}

// TestHistory tests that the answers to concurrent clients are also possible in a sequence of calls (LN-5, LN-9,
// GA-22), over a file and over a store in memory (BO-4). Each round has its own store with many small subnets, so that
// each subnet is often full and the check is short.
func TestHistory(t *testing.T) {
	for round := range 6 {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			t.Parallel()
			runHistory(t, newBench(t), round)
		})
	}
	for round := range 3 {
		t.Run(fmt.Sprint("mem", round), func(t *testing.T) {
			t.Parallel()
			runHistory(t, memBench(t), 6+round)
		})
	}
}

func runHistory(t *testing.T, b *bench, round int) {
	h := &history{handler: b.handler, begin: time.Now()}
	const clients, subnets, steps = 8, 24, 72
	var wg sync.WaitGroup
	for client := range clients {
		random := rand.New(rand.NewPCG(uint64(round), uint64(client)))
		wg.Go(func() {
			w := worker{h: h, t: t, client: client, random: random, pools: map[string][]string{}}
			for n := range steps {
				// All clients visit the subnets in the same order, so that they meet, and the history of each subnet is
				// short.
				w.act(fmt.Sprintf("10.0.%d.0/29", n*subnets/steps))
			}
		})
	}
	wg.Wait()
	b.check()
	result, info := porcupine.CheckOperationsVerbose(subnetModel(6), h.ops, 30*time.Second)
	if result != porcupine.Ok {
		t.Errorf("%s over %d operations: %s", result, len(h.ops), explain(t, h, info))
	}
}

// explain writes a page with the history that the model does not allow.
func explain(t *testing.T, h *history, info porcupine.LinearizationInfo) string {
	for _, op := range h.ops {
		if porcupine.CheckOperationsTimeout(subnetModel(6), only(h.ops, op.Input.(step).cidr),
			5*time.Second) == porcupine.Ok {
			continue
		}
		cidr := op.Input.(step).cidr
		var b strings.Builder
		for _, op := range only(h.ops, cidr) {
			fmt.Fprintf(&b, "\n%8d-%8d client %d: %+v -> %+v", op.Call/1000, op.Return/1000, op.ClientId, op.Input,
				op.Output)
		}
		return b.String()
	}
	return fmt.Sprintf("%d partitions", len(info.PartialLinearizations()))
}

func only(all []porcupine.Operation, cidr string) (part []porcupine.Operation) {
	for _, op := range all {
		if op.Input.(step).cidr == cidr {
			part = append(part, op)
		}
	}
	return part
}

// worker is one client. It knows the pools and addresses that it got.
type worker struct {
	h      *history
	t      *testing.T
	client int
	random *rand.Rand
	pools  map[string][]string // of each subnet
	taken  []step              // as give steps
}

// act makes one random call to a subnet.
func (w *worker) act(cidr string) {
	pools := w.pools[cidr]
	if len(pools) == 0 {
		w.attach(cidr)
		return
	}
	pool := pools[w.random.IntN(len(pools))]
	switch p := w.random.IntN(100); {
	case p < 8:
		w.attach(cidr)
	case p < 14:
		w.h.do(w.t, w.client, step{kind: "detach", cidr: cidr, pool: pool}) // later calls may still use it
	case p < 35 && len(w.taken) > 0 && w.taken[len(w.taken)-1].cidr == cidr:
		last := len(w.taken) - 1
		w.h.do(w.t, w.client, w.taken[last])
		w.taken = w.taken[:last]
	default:
		in := step{kind: "take", cidr: cidr, pool: pool, mac: w.client*4 + w.random.IntN(4)}
		if w.random.IntN(3) == 0 {
			in.addr = netip.MustParsePrefix(cidr).Addr().Next().String()
		}
		if out := w.h.do(w.t, w.client, in); out.refused == "" {
			w.taken = append(w.taken, step{kind: "give", cidr: cidr, pool: pool, addr: out.addr})
		}
	}
}

func (w *worker) attach(cidr string) {
	if out := w.h.do(w.t, w.client, step{kind: "attach", cidr: cidr}); out.refused == "" {
		w.pools[cidr] = append(w.pools[cidr], out.pool)
	}
}

// TestHistoryNotices tests that the model rejects a history in which an address is given twice, kept after its release,
// or refused for no reason. A take is its MAC, the requested address or "-", and the answer.
func TestHistoryNotices(t *testing.T) {
	for row := range ipamtest.Rows(3, `
		sound | Ok | attach; take 1 - 10.0.0.1; take 1 - 10.0.0.2; give; take 2 - 10.0.0.1
		given twice | Illegal | attach; take 1 - 10.0.0.1; take 2 - 10.0.0.1
		the same MAC | Illegal | attach; take 1 - 10.0.0.1; take 1 - 10.0.0.1
		another one | Illegal | attach; take 1 10.0.0.2 10.0.0.1
		full though empty | Illegal | attach; take 1 - no address is free
		held by nobody | Illegal | attach; take 1 - 10.0.0.1; give; take 2 10.0.0.1 held by
		out of nothing | Illegal | take 1 - 10.0.0.1
	`) {
		var ops []porcupine.Operation
		for i, text := range strings.Split(row[2], "; ") {
			words := strings.SplitN(text, " ", 4)
			in, out := step{kind: words[0], cidr: "10.0.0.0/29", pool: "p"}, outcome{pool: "p"}
			switch in.kind {
			case "give":
				in.addr = "10.0.0.1"
			case "take":
				in.mac, in.addr = int(words[1][0]-'0'), strings.TrimPrefix(words[2], "-")
				if out.addr = words[3]; strings.Contains(out.addr, " ") {
					out = outcome{refused: out.addr}
				}
			}
			ops = append(ops, porcupine.Operation{Input: in, Output: out, Call: int64(2 * i), Return: int64(2*i + 1)})
		}
		if got := porcupine.CheckOperationsTimeout(subnetModel(6), ops, 10*time.Second); string(got) != row[1] {
			t.Errorf("%s: %s; want %s", row[0], got, row[1])
		}
	}
}
