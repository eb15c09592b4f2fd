package driver

import (
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
)

// witness sets what the witness reports, as WORD ADDRESS: seen, gone, or cut (the engine ended before the endpoint was
// seen).
func (b *bench) witness(say string) {
	b.t.Helper()
	word, addr, _ := strings.Cut(say, " ")
	sight, known := map[string]ipam.Sight{"seen": ipam.Seen, "gone": ipam.Gone, "cut": ipam.CutOff}[word]
	if !known {
		b.t.Fatalf("no witness says %q", say)
	}
	b.witnessed[netip.MustParseAddr(addr)] = ipam.Sighting{Sight: sight}
}

// whom returns the options of an endpoint, written as in a script.
func whom(text string) opts {
	o := opts{}
	for word := range strings.FieldsSeq(text) {
		if n, is := strings.CutPrefix(word, "mac="); is {
			maps.Copy(o, mac(int(n[0]-'0')))
		} else {
			o[optName] = word
		}
	}
	return o
}

// TestLeakDoubts tests that a lease since the daemon's start is given again to the MAC that took it only if it is in
// doubt.
func TestLeakDoubts(t *testing.T) {
	const addr = "10.0.0.77"
	for row := range ipamtest.Rows(5, `
		the witness knows nothing | mac=1 | mac=1
		the witness has seen it | mac=1 | mac=1 | seen
		it has seen it since the restart | mac=1 | mac=1 | seen | restart
		it has not since the restart | mac=1 | mac=1 | | restart same
		missed in two looks | mac=1 | mac=1 | gone | same
		missed, of another MAC | mac=1 | mac=2 | gone
		missed, of another name | web mac=1 | db mac=1 | gone
		the engine was killed | mac=1 | mac=1 | cut | same
		the engine was killed, another MAC | mac=1 | mac=2 | cut
		a name alone, missed | web | web | gone | same
		another name alone, missed | web | db | gone
		a name alone, after a kill | web | web | cut
		a name alone, after a restart | web | web | | restart
		neither, missed | | | gone
		neither, after a restart | | | | restart
	`) {
		first, second := whom(row[1]), whom(row[2])
		t.Run(row[0], func(t *testing.T) {
			b := newBench(t)
			p := b.pool("local", "10.0.0.0/24", "", nil).PoolID
			b.clock.move(time.Minute) // a request right after its pool may be the network's
			b.take(p, addr, first)
			if strings.HasPrefix(row[4], "restart") {
				b.reopen()
			}
			if row[3] != "" {
				b.witness(row[3] + " " + addr)
			}
			_, refused := b.tryTake(p, addr, second)
			if (refused == "") != strings.HasSuffix(row[4], "same") {
				t.Errorf("it is answered %q", refused)
			}
			if strings.HasSuffix(row[4], "same") {
				return
			}
			wantText(t, refused, addr, "held by")
			if b.looks == 0 {
				t.Error("the witness was not asked to look")
			}
		})
	}
}

// TestLeakOfAnswer tests that an address is taken back if its answer cannot be written because the engine has hung up.
func TestLeakOfAnswer(t *testing.T) {
	b := newBench(t)
	p := b.pool("local", "10.0.0.0/24", "", nil).PoolID
	body := encode(t, map[string]any{"PoolID": p, "Address": "10.0.0.77", "Options": mac(1)})
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	must(t, err)
	given, gone, over := make(chan struct{}), make(chan struct{}), make(chan struct{})
	inner := b.handler
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		inner.ServeHTTP(&slowWriter{w, func() { close(given); <-gone }}, r)
		close(over)
	})}
	go func() { _ = server.Serve(l) }()
	defer server.Close()
	conn, err := net.Dial("unix", path)
	must(t, err)
	if _, err := io.WriteString(conn, "POST /IpamDriver.RequestAddress HTTP/1.1\r\nHost: x\r\nContent-Length: "+
		strconv.Itoa(len(body))+"\r\n\r\n"+body); err != nil {
		t.Fatal(err)
	}
	<-given
	if !b.held("10.0.0.77") {
		t.Fatal("nothing was given")
	}
	must(t, conn.Close())
	close(gone)
	<-over
	if b.held("10.0.0.77") {
		t.Error("it is given to somebody who does not know")
	}
	if got := b.take(p, "10.0.0.77", mac(1)); got != "10.0.0.77" {
		t.Error(got)
	}
	b.check()
}

// slowWriter calls first before it writes its first byte.
type slowWriter struct {
	http.ResponseWriter
	first func()
}

func (w *slowWriter) Write(b []byte) (int, error) {
	if w.first != nil {
		w.first()
		w.first = nil
	}
	return w.ResponseWriter.Write(b)
}

func (w *slowWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
