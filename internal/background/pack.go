package background

import (
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"sync"
)

// AcceptsGzip reports whether a client accepts gzip (RFC 9110, 12.5.3).
func AcceptsGzip(r *http.Request) bool {
	for _, part := range strings.Split(strings.Join(r.Header.Values("Accept-Encoding"), ","), ",") {
		name, weight, _ := strings.Cut(strings.ReplaceAll(part, " ", ""), ";")
		if name == "gzip" {
			return strings.Trim(weight, "q=0.") != "" || weight == "" // a weight of 0 means no
		}
	}
	return false
}

// Packer compresses with gzip at its fastest level, which is good enough for tables. It pauses between pieces. It must
// be closed, and not be used afterwards.
type Packer struct {
	z    *gzip.Writer
	from *sync.Pool
	work Work
}

// Packers keeps the compressors of closed Packers for the next ones, because each takes a megabyte. The zero Packers is
// ready to use.
type Packers struct{ pool sync.Pool }

// To returns a Packer that writes to w.
func (p *Packers) To(w io.Writer) *Packer {
	z, ok := p.pool.Get().(*gzip.Writer)
	if !ok {
		z, _ = gzip.NewWriterLevel(nil, gzip.BestSpeed) // the only error is an unknown level
	}
	z.Reset(w)
	return &Packer{z: z, from: &p.pool}
}

// piece is the number of bytes between two pauses. They take some tenths of a millisecond.
const piece = 32 << 10

// Write implements io.Writer.
func (p *Packer) Write(b []byte) (n int, err error) {
	for err == nil && n < len(b) {
		var more int
		more, err = p.z.Write(b[n:min(n+piece, len(b))])
		n += more
		p.work.Pause()
	}
	return n, err
}

// Close writes the rest, but does not close the writer below.
func (p *Packer) Close() error {
	err := p.z.Close()
	p.from.Put(p.z)
	p.z = nil
	return err
}
