package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// document writes a plan of the given number of subnets, starting at from, a hundred to a network, each with a
// gateway, a pool and 20 reservations. It returns the path.
func document(b *testing.B, dir string, from, subnets int) string {
	b.Helper()
	var doc strings.Builder
	doc.WriteString("version: 1\nnetworks:\n")
	for ; subnets > 0; subnets -= 100 {
		fmt.Fprintf(&doc, "- name: net%d\n  subnets:\n", from)
		var reserved strings.Builder
		for range 100 {
			net := fmt.Sprintf("10.%d.%d", from/256, from%256)
			fmt.Fprintf(&doc, "  - {cidr: %s.0/24, name: s%d, gateway: %s.1, pool: true}\n", net, from, net)
			for n := range 20 {
				fmt.Fprintf(&reserved, "  - {owner: shop/web%d/%d, address: %s.%d}\n", from, n, net, n+10)
			}
			from++
		}
		doc.WriteString("  reservations:\n" + reserved.String())
	}
	path := filepath.Join(dir, "plan.yaml")
	must(b, os.WriteFile(path, []byte(doc.String()), 0o600))
	return path
}

// BenchmarkImport runs `berth plan import` of 5,000 subnets with 100,000 reservations into an empty daemon, and
// `berth plan export` of them.
func BenchmarkImport(b *testing.B) {
	eachMedium(b, func(b *testing.B, dir string) {
		path := document(b, dir, 0, 5_000)
		b.Run("whole", func(b *testing.B) {
			for b.Loop() {
				d := serve(b, newDir(b, dir))
				d.berth(b, "plan", "import", path)
				if n := strings.Count(d.berth(b, "plan", "export"), "owner: "); n != 100_000 {
					b.Fatalf("%d reservations are exported", n)
				}
				d.stop()
			}
		})
	})
}

// BenchmarkImportBeside compares requests during imports of 300 subnets each with requests alone.
func BenchmarkImportBeside(b *testing.B) {
	dir := newDir(b, os.TempDir())
	d := serve(b, dir)
	take := d.takes(d.pool(b, "100.64.0.0/10"), "")
	from := 0
	for _, callers := range []int{1, 16} {
		compareP99(b, callers, take, func() {
			d.berth(b, "plan", "import", document(b, dir, from, 300))
			from += 300
		})
	}
}
