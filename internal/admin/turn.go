package admin

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"time"

	"berth/internal/admin/api"
)

// A body up to smallBody is read at once. A larger one waits for one of maxLarge places, which bounds the memory for
// large bodies.
const (
	smallBody = 16 << 10 // bytes
	maxLarge  = 4
	turnTime  = 5 * time.Second // the maximum wait
)

// turn is a place for something large.
type turn struct {
	places chan struct{} // holds a token for each taken place
	mine   bool
}

// take waits for a place.
func (t *turn) take(ctx context.Context) error {
	if t.mine {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, turnTime)
	defer cancel()
	select {
	case t.places <- struct{}{}:
		t.mine = true
		return nil
	case <-ctx.Done():
		return problem(http.StatusServiceUnavailable, api.CodeBusy,
			"several large requests are being read; try again when they are done")
	}
}

// end frees the place.
func (t *turn) end() {
	if t.mine {
		t.mine = false
		<-t.places
	}
}

// turnBody is a body that waits for its turn after smallBody bytes.
type turnBody struct {
	io.ReadCloser
	*turn
	ctx  context.Context //nolint:containedctx // of the request that it is the body of
	read int
}

func (b *turnBody) Read(p []byte) (int, error) {
	if left := smallBody - b.read; left > 0 {
		p = p[:min(len(p), left)]
	} else if err := b.take(b.ctx); err != nil {
		return 0, err
	}
	n, err := b.ReadCloser.Read(p)
	b.read += n
	return n, err
}

// splitting splits text into lines, like bufio.ScanLines. A large line waits for its turn before more of it is read.
func (t *turn) splitting(ctx context.Context) bufio.SplitFunc {
	return func(data []byte, atEOF bool) (advance int, line []byte, err error) {
		advance, line, err = bufio.ScanLines(data, atEOF)
		if advance == 0 && len(data) >= smallBody && err == nil {
			err = t.take(ctx)
		}
		return advance, line, err
	}
}
