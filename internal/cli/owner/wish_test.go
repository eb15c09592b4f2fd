package owner

import (
	"encoding/json"
	"strings"
	"testing"
)

// GA-24: one --ip with all choices, or several with one address each.
func TestParseWishes(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", `{"number":0}`},
		{"pool", `{"number":0,"wishes":[{"slot":0}]}`},
		{"0:ip0=192.0.2.12,ip1=pool,ip2=front",
			`{"number":0,"wishes":[{"slot":0,"address":"192.0.2.12"},{"slot":1},{"slot":2,"pool":"front"}]}`},
		{"192.0.2.12 pool front",
			`{"number":0,"wishes":[{"slot":0,"address":"192.0.2.12"},{"slot":1},{"slot":2,"pool":"front"}]}`},
		{"2:remove", `{"number":2,"action":"remove"}`},
		{"ip=pool front", "cannot be combined with another --ip"},
		{"front 1:remove", "cannot be combined with another --ip"},
		{"192.0.2.300", "--ip \"192.0.2.300\" is not a valid choice of addresses"},
	} {
		in, err := parseWishes(strings.Fields(c.in))
		if err != nil {
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("--ip %s: %v, want %q", c.in, err, c.want)
			}
		} else if got, err := json.Marshal(in); err != nil || string(got) != c.want {
			t.Errorf("--ip %s is %s, want %s", c.in, got, c.want)
		}
	}
}
