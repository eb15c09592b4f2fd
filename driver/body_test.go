package driver

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"berth/internal/ipam"
	"berth/internal/shorten"

	api "github.com/docker/go-plugins-helpers/ipam"
	"github.com/sirupsen/logrus"
	"github.com/sirupsen/logrus/hooks/test"
)

// withBody lists the calls that have a body.
var withBody = []string{"RequestPool", "ReleasePool", "RequestAddress", "ReleaseAddress"}

// TestLongValues tests that no long value of a caller is repeated in full, in an answer or in the log.
func TestLongValues(t *testing.T) {
	b := newBench(t)
	config := b.config(b.service)
	log, logged := test.NewNullLogger()
	log.SetLevel(logrus.DebugLevel)
	config.Log = logrus.NewEntry(log)
	handler := New(config).Handler()
	p := b.pool("local", "10.0.0.0/24", "", nil).PoolID
	for _, long := range []string{strings.Repeat("x", 900_000), strings.Repeat("\\u0000", 100_000), strings.Repeat("x ", 400_000)} {
		for name, call := range map[string][2]string{
			"pool":        {"ReleasePool", `{"PoolID":"` + long + `"}`},
			"address":     {"RequestAddress", fmt.Sprintf(`{"PoolID":%q,"Address":"%s"}`, p, long)},
			"mac":         {"RequestAddress", fmt.Sprintf(`{"PoolID":%q,"Options":{"com.docker.network.endpoint.macaddress":"%s"}}`, p, long)},
			"subnet":      {"RequestPool", `{"AddressSpace":"local","Pool":"` + long + `"}`},
			"range":       {"RequestPool", `{"AddressSpace":"local","Pool":"10.9.0.0/24","SubPool":"` + long + `"}`},
			"space":       {"RequestPool", `{"AddressSpace":"` + long + `"}`},
			"option":      {"RequestPool", `{"AddressSpace":"local","Options":{"` + long + `":"x"}}`},
			"its value":   {"RequestPool", `{"AddressSpace":"local","Options":{"size":"` + long + `"}}`},
			"no number":   {"RequestPool", `{"AddressSpace":` + strings.Repeat("7", 900_000) + `}`},
			"no such way": {strings.ReplaceAll(url.QueryEscape(long[:30_000]), "+", "%20"), "{}"},
		} {
			logged.Reset()
			_, reply := post(handler, "IpamDriver."+call[0], call[1])
			if len(reply) > 4*shorten.MostText {
				t.Errorf("%s: the answer has %d bytes: %.300s", name, len(reply), reply)
			}
			for _, e := range logged.AllEntries() {
				if text, err := e.String(); err != nil || len(text) > 4*shorten.MostText {
					t.Errorf("%s: a line of %d bytes is logged: %.300s", name, len(text), text)
				}
			}
		}
	}
}

// TestMalformedBody tests that a malformed body changes nothing and is not misread. The engine repeats a call with an
// empty body if its connection broke (engine.md; LN-1 to LN-4).
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
				continue // these calls have no options
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

// TestBareCalls tests that calls without a message are answered with and without a body, for each HTTP method, and that
// an unknown call is refused (LN-14).
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

// TestUnknownFields tests that unknown fields of a later engine are ignored, and known ones read.
func TestUnknownFields(t *testing.T) {
	b := newBench(t)
	status, reply := post(b.handler, "IpamDriver.RequestPool",
		`{"AddressSpace":"local","Pool":"10.0.0.0/24","SubPool":"","Options":null,"V6":false,"Exclude":["10.0.0.0/8"]}`)
	if status != http.StatusOK || !strings.Contains(reply, `"10.0.0.0/24"`) {
		t.Errorf("%d %s", status, reply)
	}
}

// TestTelling tests that the engine is asked for MACs only by the driver for containers that are known by their MAC,
// and that each request records whether the endpoint would have sent one.
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

// asked is a Service that receives requests for an address.
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
