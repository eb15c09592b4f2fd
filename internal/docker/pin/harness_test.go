package pin

import (
	"encoding/json"
	"net/http"
	"net/netip"
	"testing"

	"berth/internal/ipam/ipamtest"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var must = ipamtest.Must

func addrs(texts ...string) (all []netip.Addr) {
	for _, text := range texts {
		all = append(all, netip.MustParseAddr(text))
	}
	return all
}

// object is one of JSON.
type object = map[string]any

func answer(w http.ResponseWriter, code int, body any) {
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}
