package driver

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"berth/internal/alloc"
	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"

	api "github.com/docker/go-plugins-helpers/ipam"
)

// FuzzDecode tests that only a whole JSON object is a message, and that it means the same after it is encoded again.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{"", "{}", "null", "[]", `{"PoolID":"x"}`, `{"PoolID":"x"}{}`,
		`{"poolid":"x","Options":{"a":"b"},"V6":true}`,
		` {"Options":null}`, "{\"Address\":\"\xff\"}", `{"V6":"true"}`, `{"PoolID":"a","PoolID":"b"}`,
		`{"Options":{"a":1}}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, msg := range []any{new(api.RequestPoolRequest), new(api.ReleasePoolRequest),
			new(api.RequestAddressRequest), new(api.ReleaseAddressRequest)} {
			if read(body, msg) != nil {
				continue
			}
			if trimmed := bytes.TrimSpace(body); !json.Valid(body) || trimmed[0] != '{' {
				t.Fatalf("%q was read as %+v", body, msg)
			}
			again := reflect.New(reflect.TypeOf(msg).Elem()).Interface()
			if err := read([]byte(encode(t, msg)), again); err != nil || !reflect.DeepEqual(msg, again) {
				t.Fatalf("%+v came back as %+v: %v", msg, again, err)
			}
		}
	})
}

func read(body []byte, msg any) error {
	return decode(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body)), msg)
}

// FuzzParsePool tests that each accepted pool is well formed, has one family, and can be read back from its text.
func FuzzParsePool(f *testing.F) {
	for seed := range ipamtest.Rows(6, `
		local | 10.0.0.0/24 | 10.0.0.128/25 | | gateway | 10.0.0.1
		global | fd00::/64 | fd00::1-fd00::9 | v6 | gateway | none
		local | 0.0.0.0/24 | | | size | 26,80
		local | ::/64 | | v6 | size | /80
		local | | | v6 | quarantine | 1h
		local | ::ffff:10.0.0.0/120 | | | sticky | off
		local | 10.0.0.9/24 | 10.0.0.9-10.0.0.1 | | tag.a | b
		 | 0.0.0.0/0 | 10.0.0.1+300 | | space | lab
		local | 10.0.0.0/24 | | | gateway | 10.0.1.1,fd00::1
		local | 10.0.0.0/24 | | | network | front
		global | | | v6 | network | front
		local | 0.0.0.0/24 | | | network | front
		local | 10.0.0.0/24 | 10.0.0.128/25 | | pool | web
	`) {
		f.Add(seed[0], seed[1], seed[2], seed[3] != "", seed[4], seed[5])
	}
	f.Fuzz(func(t *testing.T, space, pool, sub string, v6 bool, key, value string) {
		msg := &api.RequestPoolRequest{AddressSpace: space, Pool: pool, SubPool: sub, V6: v6, Options: opts{key: value}}
		req, err := parsePool(msg)
		if err != nil {
			if strings.TrimSpace(err.Error()) == "" {
				t.Fatal("refused without a word")
			}
			return
		}
		if (req.Space == "") != (req.Network != "" && !req.Swarm) || space == "" {
			t.Errorf("the space %q became %+v", space, req)
		}
		if req.Network != "" && req.Bits != 0 || req.Pool != "" && !req.Range.IsZero() {
			t.Errorf("a contradiction was accepted: %+v", req)
		}
		if (pool == "") != (!req.CIDR.IsValid() && !sizeOnly(pool)) {
			t.Errorf("the pool %q became %v", pool, req.CIDR)
		}
		checkCIDR(t, req)
		if (sub == "") != req.Range.IsZero() {
			t.Errorf("the range %q became %v", sub, req.Range)
		}
		checkRange(t, req)
		if g := req.Gateway; g.IsValid() &&
			(g.Is4In6() || g.Zone() != "" || g.Is6() != req.IPv6 || req.CIDR.IsValid() && !req.CIDR.Contains(g)) {
			t.Errorf("gateway %s of %+v", g, req)
		}
		if req.Quarantine != nil && *req.Quarantine < 0 {
			t.Errorf("quarantine %s", *req.Quarantine)
		}
		for name := range req.Tags {
			if ipam.CheckName("tag", name) != nil {
				t.Errorf("tag %q", name)
			}
		}
	})
}

func sizeOnly(pool string) bool {
	p, err := netip.ParsePrefix(pool)
	return err == nil && p.Addr().IsUnspecified()
}

func checkCIDR(t *testing.T, req ipam.PoolRequest) {
	t.Helper()
	if !req.CIDR.IsValid() {
		limit := 32
		if req.IPv6 {
			limit = 128
		}
		if req.Bits < 0 || req.Bits > limit {
			t.Errorf("%d bits, IPv6 %v", req.Bits, req.IPv6)
		}
		return
	}
	p := req.CIDR
	if p != p.Masked() || p.Bits() == 0 || p.Addr().Is4In6() || p.Addr().Is6() != req.IPv6 || req.Bits != 0 {
		t.Errorf("the subnet %s of %+v", p, req)
	}
	again, err := parsePool(&api.RequestPoolRequest{AddressSpace: "local", Pool: p.String()})
	if err != nil || again.CIDR != p {
		t.Errorf("%s came back as %s: %v", p, again.CIDR, err)
	}
}

func checkRange(t *testing.T, req ipam.PoolRequest) {
	t.Helper()
	if req.Range.IsZero() {
		return
	}
	r := req.Range
	if r.From().Is4() != r.To().Is4() || r.To().Less(r.From()) || r.From().Is4In6() || r.To().Is4In6() ||
		r.From().Zone() != "" {
		t.Errorf("the range %s-%s", r.From(), r.To())
	}
	again, err := alloc.ParseRange(r.String())
	if err != nil || again != r.IPRange {
		t.Errorf("%s came back as %v: %v", r, again, err)
	}
}

// FuzzParseAddress tests that each accepted request names one pool, at most one address, and a MAC of six bytes.
func FuzzParseAddress(f *testing.F) {
	id := ipam.NewID().String()
	f.Add(id, "10.0.0.1", "02:42:ac:11:00:02", "web", typeGateway)
	f.Add(id, "fd00::1", "", "/web", "")
	f.Add(id, "::ffff:10.0.0.1", "0242.ac11.0002", "", "")
	f.Add(id, "10.0.0.1/24", "02-42-ac-11-00-02", strings.Repeat("x", 300), "other")
	f.Add("LocalDefault/10.0.0.0/24", "fe80::1%eth0", "00:00:00:00:fe:80:00:00", "a\nb", "")
	f.Fuzz(func(t *testing.T, pool, addr, hw, name, kind string) {
		req, err := parseAddress(&api.RequestAddressRequest{PoolID: pool, Address: addr,
			Options: opts{optMAC: hw, optName: name, optAddressType: kind}})
		if err != nil {
			return
		}
		if !strings.EqualFold(req.Pool.String(), pool) {
			t.Errorf("the pool %q became %s", pool, req.Pool)
		}
		if (addr == "") == req.Preferred.IsValid() {
			t.Errorf("the address %q became %v", addr, req.Preferred)
		}
		if a := req.Preferred; a.IsValid() {
			if again, err := parseAddr(a.String()); err != nil || again != a || a.Is4In6() || a.Zone() != "" {
				t.Errorf("the address %q became %s, and that %v: %v", addr, a, again, err)
			}
		}
		if again, err := ipam.ParseMAC(hw); hw != "" && (err != nil || again != req.MAC) || hw == "" &&
			req.MAC != (ipam.MAC{}) {
			t.Errorf("the MAC %q became %s", hw, req.MAC)
		}
		if len(req.Name) > maxNameLength || !strings.HasSuffix(name, req.Name) {
			t.Errorf("the name %q became %q", name, req.Name)
		}
		if req.Gateway != (kind == typeGateway) {
			t.Errorf("the type %q became %v", kind, req.Gateway)
		}
	})
}

// FuzzNameServers tests that each line gives at most one address, without a zone and not mapped into IPv6.
func FuzzNameServers(f *testing.F) {
	f.Add([]byte("nameserver 10.0.0.1\nnameserver fe80::1%eth0\n# nameserver 1.1.1.1\noptions ndots:2\n"))
	f.Add([]byte("nameserver\nnameserver ::ffff:10.0.0.1 x\r\n\tnameserver 9.9.9.9"))
	f.Add([]byte("nameserver 010.0.0.1\nNAMESERVER 1.1.1.1\n\x00nameserver 1.1.1.1"))
	f.Fuzz(func(t *testing.T, content []byte) {
		path := filepath.Join(t.TempDir(), "resolv.conf")
		must(t, os.WriteFile(path, content, 0o600))
		all, err := nameServers(path)
		if len(all) > bytes.Count(content, []byte("nameserver")) {
			t.Errorf("%d servers in %q", len(all), content)
		}
		for _, p := range all {
			if !p.IsSingleIP() || p.Addr().Zone() != "" || p.Addr().Is4In6() {
				t.Errorf("%v in %q", p, content)
			}
		}
		if err == nil {
			twice := append(append(bytes.Clone(content), '\n'), content...)
			must(t, os.WriteFile(path, twice, 0o600))
			if again, err := nameServers(path); err != nil || len(again) != 2*len(all) {
				t.Errorf("%q holds %d servers, twice that %d: %v", content, len(all), len(again), err)
			}
		}
	})
}

// FuzzCalls tests that each call is answered in JSON, with 200 or an error that the engine can read, and that the state
// stays consistent.
func FuzzCalls(f *testing.F) {
	f.Add(byte(0), `{"AddressSpace":"local","Pool":"10.0.0.0/29"}`, byte(2),
		`{"PoolID":"P1","Options":{"com.docker.network.endpoint.macaddress":"02:42:00:00:00:01"}}`)
	f.Add(byte(0), `{"AddressSpace":"global","V6":true,"Options":{"size":"126","gateway":"none"}}`, byte(2),
		`{"PoolID":"P1","Address":"fd00:be27::1"}`)
	f.Add(byte(0), `{"AddressSpace":"local","Pool":"0.0.0.0/30","Options":{"quarantine":"1h"}}`, byte(3),
		`{"PoolID":"P1","Address":"172.16.0.1"}`)
	f.Add(byte(0), `{"AddressSpace":"local","Pool":"10.0.0.0/31","SubPool":"10.0.0.0"}`, byte(1), `{"PoolID":"P1"}`)
	methods := []string{"RequestPool", "ReleasePool", "RequestAddress", "ReleaseAddress"}
	b := newBench(f)
	f.Fuzz(func(t *testing.T, m1 byte, body1 string, m2 byte, body2 string) {
		names := &poolNames{}
		for _, call := range []struct {
			method byte
			body   string
		}{{m1, body1}, {m2, body2}, {m2, body2}} {
			method := methods[int(call.method)%len(methods)]
			status, reply := post(b.handler, "IpamDriver."+method, names.ids(call.body))
			names.learn("IpamDriver."+method, []byte(reply))
			var e api.ErrorResponse
			if err := json.Unmarshal([]byte(reply), &e); err != nil || (status == http.StatusOK) != (e.Err == "") ||
				strings.Contains(e.Err, "failed inside") {
				t.Fatalf("%s %q: %d %q", method, call.body, status, reply)
			}
		}
		b.t = t
		b.check()
		for _, id := range names.given {
			b.drop(id)
		}
		if left := b.subnets(""); len(left) != 0 {
			t.Errorf("left: %v", left)
		}
		b.t = f
	})
}
