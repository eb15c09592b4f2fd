package aside

import (
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"sync"
)

// Unpacks tells whether a client reads gzip.
func Unpacks(r *http.Request) bool {
	for _, part := range strings.Split(strings.Join(r.Header.Values("Accept-Encoding"), ","), ",") {
		name, weight, _ := strings.Cut(strings.ReplaceAll(part, " ", ""), ";")
		if name == "gzip" {
			return strings.Trim(weight, "q=0.") != "" || weight == "" // RFC 9110: a weight of 0 is a no
		}
	}
	return false
}

// Packer packs what is written to it by gzip, at the level that takes the least time: tables pack well at any. It
// pauses between pieces. Close it, and leave it alone then.
type Packer struct {
	z    *gzip.Writer
	from *sync.Pool
	work Work
}

// Packers are kept for the next ones who pack: one is a megabyte, of which an answer needs nothing when it is sent. The
// zero Packers has none yet.
type Packers struct{ pool sync.Pool }

// To returns a Packer that writes to w.
func (p *Packers) To(w io.Writer) *Packer {
	z, ok := p.pool.Get().(*gzip.Writer)
	if !ok {
		z, _ = gzip.NewWriterLevel(nil, gzip.BestSpeed) // an error is that of an unknown level
	}
	z.Reset(w)
	return &Packer{z: z, from: &p.pool}
}

// piece is how much is packed at a time: some tenths of a millisecond.
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

// Close writes what is left.
func (p *Packer) Close() error {
	err := p.z.Close()
	p.from.Put(p.z)
	p.z = nil
	return err
}
