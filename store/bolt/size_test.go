package bolt

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"berth/store"
)

const fullState = 65536 // number of leases, and of events

// fill writes the leases and events of a /16, 64 callers at a time, two keys each.
func fill(t testing.TB, s *Store) {
	var n atomic.Int64
	var wg sync.WaitGroup
	value, event := make([]byte, 100), make([]byte, 90)
	for range 64 {
		wg.Go(func() {
			for i := n.Add(1); i <= fullState; i = n.Add(1) {
				err := s.Update(context.Background(), func(tx store.Tx) error {
					if err := tx.Put(benchKey("l", i), value); err != nil {
						return err
					}
					return tx.Put(benchKey("n", i), event)
				})
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// memory reads a line of /proc/self/status, in bytes.
func memory(t testing.TB, name string) int64 {
	t.Helper()
	b, err := os.ReadFile("/proc/self/status")
	must(t, err)
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			n, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			must(t, err)
			return n << 10
		}
	}
	t.Fatalf("no %s", name)
	return 0
}

// TestSizeOfAFullState checks that the file stays under 28 MiB (48 are allowed, 20 are keys and values), and
// that opening it, with the check of the whole file, maps less than 4 MiB of pages.
func TestSizeOfAFullState(t *testing.T) {
	path := filepath.Join(t.TempDir(), "berth.db")
	s, err := Open(context.Background(), Config{Path: path, NoSync: true})
	must(t, err)
	fill(t, s)
	must(t, s.Close())
	info, err := os.Stat(path)
	must(t, err)
	mapped := memory(t, "RssFile")
	quickest := time.Hour
	var report Report
	for range 3 { // takes the quickest: this machine has other users
		begin := time.Now()
		s, err = Open(context.Background(), Config{Path: path})
		must(t, err)
		quickest = min(quickest, time.Since(begin))
		if grown := memory(t, "RssFile") - mapped; grown > 4<<20 {
			t.Errorf("opening maps %d KiB", grown>>10)
		}
		must(t, s.View(context.Background(), func(tx store.Tx) error {
			for _, err := range tx.Scan(store.Range{}) {
				if err != nil {
					return err
				}
			}
			return nil
		}))
		if grown := memory(t, "RssFile") - mapped; grown > 4<<20 {
			t.Errorf("after reading everything, %d KiB are mapped", grown>>10)
		}
		report, err = s.Check(context.Background())
		must(t, err)
		must(t, s.Close())
	}
	t.Logf("%d bytes, %d pages, %d free, opened in %v", info.Size(), report.Pages, report.Free, quickest)
	if report.Records != 2*fullState || info.Size() > 28<<20 {
		t.Errorf("%d records in %d bytes", report.Records, info.Size())
	}
}

// TestManyFreePages: a state that has shrunk opens again, whenever its child process collects garbage. The list
// of its free pages is long, and reading it makes garbage.
func TestManyFreePages(t *testing.T) {
	t.Setenv("GOGC", "1")
	path := filepath.Join(t.TempDir(), "berth.db")
	s, err := Open(t.Context(), Config{Path: path, NoSync: true})
	must(t, err)
	fill(t, s)
	for i := int64(1); i <= fullState; {
		must(t, s.Update(t.Context(), func(tx store.Tx) (err error) {
			for n := 0; n < 2000 && i <= fullState && err == nil; n++ {
				err = tx.Delete(benchKey("l", i))
				i++
			}
			return err
		}))
	}
	must(t, s.Close())
	for range 20 {
		report, err := Check(t.Context(), path)
		if err != nil || len(report.Problems) > 0 || report.Free < 1000 {
			t.Fatalf("%+v, %v", report, err)
		}
	}
}
