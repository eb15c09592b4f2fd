package driver

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"berth/internal/ipam"

	api "github.com/docker/go-plugins-helpers/ipam"
)

// withBody are the calls that carry a message.
var withBody = []string{"RequestPool", "ReleasePool", "RequestAddress", "ReleaseAddress"}

// TestMalformedBody: the engine repeats a call whose connection broke with an empty body. Nothing malformed is read as
// something else, and nothing changes (engine.md; LN-1 to LN-4).
func TestMalformedBody(t *testing.T) {
	b := newBench(t)
	p := b.pool("local", "10.0.0.0/24", "", nil).PoolID
	held := b.take(p, "", mac(1))
	bodies := map[string]string{
		"empty":            "",
		"blank":            " \r\n\t\n",
		"null":             "null",
		"array":            "[]",
		"string":           `"PoolID"`,
		"number":           "7",
		"true":             "true",
		"empty object":     "{}",
		"cut short":        `{"PoolID":"` + p + `","Addr`,
		"two objects":      fmt.Sprintf(`{"PoolID":%q}{"PoolID":%q}`, p, p),
		"rest behind it":   fmt.Sprintf(`{"AddressSpace":"local","PoolID":%q,"Address":"10.0.0.9"} x`, p),
		"number as id":     `{"PoolID":7,"AddressSpace":7,"Address":7}`,
		"object as id":     `{"PoolID":{},"AddressSpace":{},"Address":{}}`,
		"options as array": fmt.Sprintf(`{"PoolID":%q,"AddressSpace":"local","Options":[]}`, p),
		"not UTF-8":        "\xff\xfe{}",
		"HTML":             "<html>",
		"deep":             strings.Repeat(`{"a":`, 20000),
	}
	for name, body := range bodies {
		for _, method := range withBody {
			if name == "options as array" && strings.HasPrefix(method, "Release") {
				continue // these have no options
			}
			t.Run(method+"/"+name, func(t *testing.T) {
				status, reply := post(b.handler, "IpamDriver."+method, body)
				if status == http.StatusOK {
					t.Fatalf("it was answered: %s", reply)
				}
				var e api.ErrorResponse
				decodeReply(t, reply, &e)
				if e.Err == "" {
					t.Errorf("the answer %s has no error that the engine reads", reply)
				}
				if strings.TrimSpace(body) == "" && !strings.Contains(e.Err, "no body") {
					t.Errorf("the error %q does not say that the body is missing", e.Err)
				}
			})
		}
	}
	if got := b.subnets(""); len(got) != 1 {
		t.Errorf("subnets: %v", got)
	}
	b.holds(held, mac(1))
	if got := b.take(p, "", mac(2)); got != "10.0.0.2" {
		t.Errorf("something was taken: the next address is %s", got)
	}
}

// TestBareCalls: the calls without a message are answered with and without a body, by whichever method, and an unknown
// one is refused (LN-14).
func TestBareCalls(t *testing.T) {
	b := newBench(t)
	for _, row := range []struct{ call, want string }{
		{"Plugin.Activate", `{"Implements": ["IpamDriver"]}`},
		{"IpamDriver.GetCapabilities", `{"RequiresMACAddress":false}`},
		{"IpamDriver.GetDefaultAddressSpaces",
			`{"LocalDefaultAddressSpace":"local","GlobalDefaultAddressSpace":"global"}`},
	} {
		for _, body := range []string{"", "null", "{}"} {
			status, reply := post(b.handler, row.call, body)
			if status != http.StatusOK || strings.TrimSpace(reply) != row.want {
				t.Errorf("%s with %q: %d %s", row.call, body, status, reply)
			}
		}
	}
	for _, call := range []string{"", "IpamDriver.", "IpamDriver.RequestPool/", "NetworkDriver.GetCapabilities",
		"../Plugin.Activate"} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("{}"))
		r.URL.Path = "/" + call
		b.handler.ServeHTTP(w, r)
		if w.Code < 300 {
			t.Errorf("%q was answered: %d %s", call, w.Code, w.Body)
		}
	}
}

// TestUnknownFields: a later engine may send more than is known of; what is known is still read.
func TestUnknownFields(t *testing.T) {
	b := newBench(t)
	status, reply := post(b.handler, "IpamDriver.RequestPool",
		`{"AddressSpace":"local","Pool":"10.0.0.0/24","SubPool":"","Options":null,"V6":false,"Exclude":["10.0.0.0/8"]}`)
	if status != http.StatusOK || !strings.Contains(reply, `"10.0.0.0/24"`) {
		t.Errorf("%d %s", status, reply)
	}
}

// TestTelling: the engine is asked for MACs by the driver that is for those who are known by one, and by no other;
// and each request tells whether an endpoint would have said who it is.
func TestTelling(t *testing.T) {
	for asks, want := range map[bool]string{false: `{"RequiresMACAddress":false}`,
		true: `{"RequiresMACAddress":true}`} {
		var seen *ipam.AddressRequest
		h := New(Config{Service: asked(func(req ipam.AddressRequest) { seen = &req }), Log: quiet(),
			AskMAC: asks}).Handler()
		if _, reply := post(h, "IpamDriver.GetCapabilities", ""); strings.TrimSpace(reply) != want {
			t.Errorf("asking %v: %s", asks, reply)
		}
		if status, reply := post(h, "IpamDriver.RequestAddress", `{"PoolID":"`+ipam.ID{1}.String()+
			`"}`); status != http.StatusOK {
			t.Errorf("asking %v: %d %s", asks, status, reply)
		}
		if seen == nil || seen.Telling != asks {
			t.Errorf("asking %v: the request was %+v", asks, seen)
		}
	}
}

// asked is a Service that is told of requests for an address.
type asked func(ipam.AddressRequest)

func (asked) RequestPool(context.Context, ipam.PoolRequest) (ipam.PoolGrant, error) {
	return ipam.PoolGrant{}, nil
}
func (asked) ReleasePool(context.Context, ipam.ID) error { return nil }
func (a asked) RequestAddress(_ context.Context, req ipam.AddressRequest) (netip.Prefix, error) {
	a(req)
	return netip.MustParsePrefix("10.0.0.2/24"), nil
}
func (asked) ReleaseAddress(context.Context, ipam.ID, netip.Addr) error { return nil }
