package background

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// TestPackers: parallel writers get back what they wrote, though they share compressors.
func TestPackers(t *testing.T) {
	var all Packers
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for n := range 20 {
				want := strings.Repeat(fmt.Sprintf("%d of %d;", n, i), 10_000) // several pieces
				var packed bytes.Buffer
				z := all.To(&packed)
				written, err := io.Copy(&Writer{To: z}, strings.NewReader(want))
				if err != nil || written != int64(len(want)) || z.Close() != nil {
					t.Errorf("%d of %d bytes were written: %v", written, len(want), err)
				}
				r, err := gzip.NewReader(&packed)
				if err != nil {
					t.Error(err)
					return
				}
				if got, err := io.ReadAll(r); err != nil || string(got) != want {
					t.Errorf("got %d bytes, want %d: %v", len(got), len(want), err)
				}
			}
		})
	}
	wg.Wait()
}

// TestAcceptsGzip follows RFC 9110, 12.5.3.
func TestAcceptsGzip(t *testing.T) {
	for _, c := range []struct {
		sent []string
		want bool
	}{
		{nil, false},
		{[]string{"gzip"}, true},
		{[]string{"br, gzip ; q=0.5"}, true},
		{[]string{"br", "gzip;q=1"}, true},
		{[]string{"gzip;q=0"}, false},
		{[]string{"gzip;q=0.000, br"}, false},
		{[]string{"identity"}, false},
	} {
		r := &http.Request{Header: http.Header{"Accept-Encoding": c.sent}}
		if got := AcceptsGzip(r); got != c.want {
			t.Errorf("%q: %v", c.sent, got)
		}
	}
}
