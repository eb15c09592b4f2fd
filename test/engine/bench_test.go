//go:build engine

package engine

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"berth/test/lab"
)

// BenchmarkRun compares the whole life of a container on a Berth network with one on the engine's own IPAM.
func BenchmarkRun(b *testing.B) {
	d := daemon(b, "run", pluginDir, "--log-level", "warning")
	builtIn := d.Name + "-own"
	cleared(b)
	docked(b, "network", "create", "--ipam-driver", d.Name, "--subnet", fmt.Sprintf("10.%d.1.0/24", octet), d.Name)
	docked(b, "network", "create", "--subnet", fmt.Sprintf("10.%d.2.0/24", octet), builtIn)
	var ours, theirs time.Duration
	for b.Loop() {
		for network, took := range map[string]*time.Duration{d.Name: &ours, builtIn: &theirs} {
			begun := time.Now()
			docked(b, "run", "--rm", "--network", network, imageName, "sh", "-c", ":")
			*took += time.Since(begun)
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(ours.Seconds()*1000/float64(b.N), "ours-ms")
	b.ReportMetric(float64(ours)/float64(theirs), "time-ratio")
}

// BenchmarkIdle starts a container with 0, 8 and 1000 idle ones on its network. It times the address request as an
// engine that sends no names waits for it. The daemon asks the engine who starts.
func BenchmarkIdle(b *testing.B) {
	d := daemon(b, "idle", pluginDir, "--log-level", "warning")
	times, name := timed(b, d.PluginSocket()), d.Name+"-timed"
	cleared(b)
	docked(b, "network", "create", "--ipam-driver", name, "--subnet", fmt.Sprintf("10.%d.16.0/20", octet), name)
	docked(b, "create", "--name", name, "--network", name, imageName)
	there := 0
	for _, idle := range []int{0, 8, 1000} {
		for ; there < idle; there++ {
			docked(b, "create", "--name", fmt.Sprint(name, there), "--network", name, imageName)
		}
		b.Run(fmt.Sprintf("idle=%d", idle), func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				for len(times) > 0 {
					<-times // those of the gateway
				}
				docked(b, "start", name)
				took = append(took, <-times)
				docked(b, "stop", "--time", "0", name)
			}
			slices.Sort(took)
			b.ReportMetric(0, "ns/op")
			for _, percent := range []int{50, 99} {
				b.ReportMetric(took[(len(took)-1)*percent/100].Seconds()*1000, fmt.Sprintf("p%d-ms", percent))
			}
		})
	}
}

// BenchmarkBack: four containers are killed while Berth is away, and Berth starts again. From the start of its process,
// it times the first answer to a request for an address, and the first check that names the four leases that nobody has.
// With an engine that does not answer, it times the first answer only.
func BenchmarkBack(b *testing.B) {
	const gone = 4
	d := daemon(b, "back", pluginDir, "--log-level", "warning")
	cleared(b)
	subnet := fmt.Sprintf("10.%d.32.0/20", octet)
	docked(b, "network", "create", "--ipam-driver", d.Name, "--subnet", subnet, d.Name)
	var containers []string
	own := d.Flags
	for _, n := range []int{8, 200} {
		for len(containers) < n {
			name := fmt.Sprint(d.Name, len(containers))
			docked(b, containerCommand(name, d.Name)...)
			containers = append(containers, name)
		}
		for _, engine := range []string{"answers", "hangs"} {
			b.Run(fmt.Sprintf("containers=%d/engine=%s", n, engine), func(b *testing.B) {
				if d.Flags = own; engine == "hangs" {
					d.Flags = append(slices.Clone(own), "--docker-host", "unix://"+deaf(b))
				}
				var first, known []time.Duration
				for b.Loop() {
					all, err := leases(d, subnet)
					lab.Must(b, err, d.Kill())
					var dying sync.WaitGroup
					for _, c := range containers[:gone] {
						dying.Go(func() { docked(b, "kill", c) })
					}
					dying.Wait() // also for the releases, which the engine gives up
					pool := all[slices.IndexFunc(all, func(l Lease) bool { return l.Kind == "automatic" })].Pool
					begun := time.Now()
					lab.Must(b, d.Revive())
					addr, err := takeByHand(d.PluginSocket(), pool, "", "")
					lab.Must(b, err, giveByHand(d.PluginSocket(), pool, addr))
					first = append(first, time.Since(begun))
					if engine == "answers" {
						lab.Must(b, lab.Eventually(time.Minute, func() error {
							var status struct{ Witness witnessStatus }
							out, err := berth(d, "status", "--format", "json")
							if err == nil {
								err = json.Unmarshal([]byte(out), &status)
							}
							if err != nil {
								return err
							}
							if got := status.Witness.Counts["unused_lease"]; got < gone {
								return fmt.Errorf("%d leases are known to be nobody's", got)
							}
							return nil
						}))
						known = append(known, time.Since(begun))
					}
					for _, c := range containers[:gone] {
						docked(b, "start", c)
					}
				}
				b.ReportMetric(0, "ns/op")
				for unit, took := range map[string][]time.Duration{"first-ms": first, "known-ms": known} {
					if len(took) > 0 {
						slices.Sort(took)
						b.ReportMetric(took[len(took)/2].Seconds()*1000, unit)
						b.ReportMetric(took[len(took)-1].Seconds()*1000, "worst-"+unit)
					}
				}
			})
		}
	}
}

// deaf returns a socket whose connections get no answer.
func deaf(b *testing.B) string {
	b.Helper()
	socket := filepath.Join(b.TempDir(), "deaf.sock")
	l, err := net.Listen("unix", socket)
	lab.Must(b, err)
	b.Cleanup(func() { l.Close() })
	return socket
}

// timed creates a driver, named after a daemon's socket, that passes requests on to the daemon. It reports how long
// each address request takes.
func timed(b *testing.B, socket string) <-chan time.Duration {
	b.Helper()
	times := make(chan time.Duration, 10)
	lab.Between(b, strings.TrimSuffix(socket, ".sock")+"-timed.sock", socket, func(r *http.Request, pass func()) {
		begun := time.Now()
		pass()
		if strings.HasSuffix(r.URL.Path, ".RequestAddress") {
			times <- time.Since(begun)
		}
	})
	return times
}

func docked(b *testing.B, args ...string) {
	b.Helper()
	if _, err := machineEngine.Docker(args...); err != nil {
		b.Fatal(err)
	}
}

// cleared removes what a benchmark made, at its end, while the driver still runs.
func cleared(b *testing.B) {
	b.Cleanup(func() {
		err := removeContainers(machineEngine, prefix)
		if _, kept := removeNetworks(machineEngine, prefix); err != nil || kept != nil {
			b.Error(err, kept)
		}
	})
}
