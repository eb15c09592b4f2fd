package driver

import (
	"fmt"
	"strings"
	"testing"

	api "github.com/docker/go-plugins-helpers/ipam"
)

// TestTagBounds tests that tags from the engine have the same bounds as those of users: 128 tags of 255 printable
// bytes.
func TestTagBounds(t *testing.T) {
	b := newBench(t)
	many := func(n int) opts {
		o := opts{}
		for i := range n {
			o[fmt.Sprintf("tag.k%d", i)] = "v"
		}
		return o
	}
	refused := func(o opts, want string) {
		t.Helper()
		_, says := b.tryPool(api.RequestPoolRequest{AddressSpace: "local", Pool: "10.0.0.0/24", Options: o})
		if !strings.Contains(says, want) || len(says) > 1000 {
			t.Errorf("refused with %.300q; want %q", says, want)
		}
	}
	for want, o := range map[string]opts{
		"at most 255 are allowed":  {"tag.note": strings.Repeat("n", 1<<17)},
		"it can have at most 128":  many(5_000),
		"cannot be printed":        {"tag.note": "a\nb"},
		"would have 129 tags":      many(129),
		"the tag note has 256 byt": {"tag.note": strings.Repeat("n", 256)},
	} {
		refused(o, want)
	}
	most := many(128)
	most["tag.k0"] = strings.Repeat("n", 255)
	b.pool("local", "10.0.0.0/24", "", most)
	refused(opts{"tag.another": "1"}, "would have 129 tags")
}
