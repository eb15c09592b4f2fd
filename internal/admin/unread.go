package admin

import (
	"errors"
	"io"
	"net/http"
	"time"

	"berth/internal/connlimit"
)

// The rest of a body that nobody has read is read and discarded after the answer. If the connection closed at once, a
// client that still writes would get an error of the connection and not the answer. The limits bound what that costs.
const (
	mostUnread   = 64 << 20         // bytes
	unreadPause  = 2 * time.Second  // the longest wait for the next piece
	unreadTime   = 30 * time.Second // for all of it
	unreadPiece  = 16 << 10         // bytes
	leftToServer = 256 << 10        // bytes; net/http discards as much before it answers
)

// unread sends the answer and then discards the rest of the body.
func (s *Server) unread(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer connlimit.Answering(r.Context())() // until the rest of the body is read, too
		if r.Body == nil || r.Body == http.NoBody {
			next.ServeHTTP(w, r)
			return
		}
		body := &readBytes{ReadCloser: r.Body}
		asked := *r // net/http looks at the body of its own request
		asked.Body = body
		next.ServeHTTP(w, &asked)
		if body.ended || r.ContentLength >= 0 && r.ContentLength-body.n <= leftToServer {
			return
		}
		control := http.NewResponseController(w)
		if r.ContentLength < 0 {
			_ = control.EnableFullDuplex() // net/http would wait for the next piece before it answers
		}
		if control.Flush() == nil {
			s.discard(control, body)
		}
	})
}

// discard reads the rest of a body, within the limits.
func (s *Server) discard(control *http.ResponseController, body io.Reader) {
	piece := make([]byte, unreadPiece)
	until := time.Now().Add(unreadTime)
	for n := 0; n < mostUnread && !s.isEnding(); {
		end := time.Now().Add(unreadPause)
		if end.After(until) {
			end = until
		}
		if control.SetReadDeadline(end) != nil {
			return
		}
		k, err := body.Read(piece)
		if errors.Is(err, io.EOF) {
			_ = control.SetReadDeadline(time.Time{}) // the connection may have another request
		}
		if err != nil {
			return
		}
		n += k
	}
}

// readBytes is a body whose read bytes are counted.
type readBytes struct {
	io.ReadCloser
	n     int64
	ended bool
}

func (b *readBytes) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.n += int64(n)
	b.ended = b.ended || errors.Is(err, io.EOF)
	return n, err
}
