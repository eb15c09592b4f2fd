package bench

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	api "github.com/docker/go-plugins-helpers/ipam"
)

// handlerSocket makes this program an idle handler on that socket.
const handlerSocket = "BERTH_BENCH_HANDLER"

func TestMain(m *testing.M) {
	if socket := os.Getenv(handlerSocket); socket != "" {
		l, err := net.Listen("unix", socket)
		if err == nil {
			err = api.NewHandler(handler{}).Serve(l)
		}
		panic(err)
	}
	os.Exit(m.Run())
}

// handler is a driver that does nothing. The benchmarks need no other calls.
type handler struct{ api.Ipam }

func (handler) GetCapabilities() (*api.CapabilitiesResponse, error) {
	return &api.CapabilitiesResponse{}, nil
}

func (handler) RequestAddress(*api.RequestAddressRequest) (*api.RequestAddressResponse, error) {
	return &api.RequestAddressResponse{Address: "10.0.0.2/8"}, nil
}

// BenchmarkSocket makes three comparisons. Addresses over a daemon's socket, each durable before its answer, are
// compared with an idle handler in another process, and for one caller with a bare bbolt transaction of one key.
// Addresses through the admin API are compared with those from the driver.
func BenchmarkSocket(b *testing.B) {
	eachMedium(b, func(b *testing.B, dir string) {
		d, handlerDir := serve(b, dir), newDir(b, dir)
		d.berth(b, "network", "create", "lan", "--subnet", "11.0.0.0/8,pool")
		take := d.takes(d.pool(b, "10.0.0.0/8"), "")
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = append(os.Environ(), handlerSocket+"="+filepath.Join(handlerDir, "plugin.sock"))
		idle := launch(b, handlerDir, cmd)
		compareBy(b, ratio, []int{1, 16, 64}, take, idle.takes("", ""))
		b.Run("bbolt", func(b *testing.B) {
			compare(b, ratio, by(1, take), bareKeys(b, filepath.Join(newDir(b, dir), "bare.db"), 1, 1))
		})
		path := "admin/v1/subnets/" + subnetID(b, d, "11.0.0.0/8") + "/available-ips"
		b.Run("admin", func(b *testing.B) {
			compareBy(b, ratio, []int{1, 16}, func(int) error {
				_, err := d.post(path, `{"owner":"`+newMAC().String()+`"}`)
				return err
			}, take)
		})
	})
}
