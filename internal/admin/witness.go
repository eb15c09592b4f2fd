package admin

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"net/http"
	"time"

	"berth/internal/admin/api"
	"berth/internal/ipam"
)

// maxNews is the largest line of POST /v1/witness/news.
const maxNews = 4 << 20

// check compares the records with the engine and changes nothing.
func (s *Server) check(ctx context.Context, _ api.None) (ipam.CheckReport, error) {
	return s.compare(ctx, ipam.CheckRequest{})
}

func (s *Server) compare(ctx context.Context, req ipam.CheckRequest) (report ipam.CheckReport, err error) {
	if s.cfg.Check == nil {
		return report, noWitness()
	}
	ctx, end := s.whileServing(ctx)
	defer end()
	if report, err = s.cfg.Check(ctx, req); err != nil {
		return report, err
	}
	s.addElastic(ctx, &report)
	s.addHost(ctx, &report)
	report.Waiting = s.cfg.Service.Waiting()
	report.Absent = s.absentHosts(ctx)
	return report, nil
}

// absentHosts returns the hosts whose leases nobody compares now. If the cluster's store is out of reach, the report
// says that already.
func (s *Server) absentHosts(ctx context.Context) (absent []ipam.AbsentHost) {
	hosts, err := s.cfg.Service.Hosts(ctx)
	if err != nil {
		return nil
	}
	for _, h := range hosts {
		if !h.Present && !h.Self && h.Leases > 0 {
			absent = append(absent, ipam.AbsentHost{Host: h.Name, Leases: h.Leases})
		}
	}
	return absent
}

// releaseLease ends a lease whose endpoint is gone.
func (s *Server) releaseLease(ctx context.Context, req ipam.LeaseRelease) (ipam.LeaseInfo, error) {
	return s.cfg.Release(ctx, req)
}

// showEngine passes on a view of an engine that this daemon may not read itself.
func (s *Server) showEngine(ctx context.Context, view ipam.EngineView) (api.Done, error) {
	return api.OK(), s.cfg.Show(ctx, view)
}

// seen binds a row whose body is an engine's view, if there is a witness. Large bodies are read one at a time.
func seen[T, Resp any](s *Server, e api.Endpoint[api.Body[T], Resp], can func() bool,
	answer func(context.Context, T) (Resp, error)) route {
	return raw(e, func(w http.ResponseWriter, r *http.Request, req api.Body[T]) error {
		if !can() {
			return noWitness()
		}
		done, err := s.readSeen(w, r, &req.Body)
		if err != nil {
			return err
		}
		defer done()
		resp, err := answer(r.Context(), req.Body)
		if err != nil {
			return err
		}
		if err := timed(w); err != nil {
			return err
		}
		return replyPage(w, r, &resp)
	})
}

// hearEngine reads the events of an engine that this daemon may not read itself, a line each, until the body ends. An
// empty line shows that the client is still there. The answer begins with the first question and has a line for each.
func (s *Server) hearEngine(w http.ResponseWriter, r *http.Request, req api.NewsRequest) error {
	control := http.NewResponseController(w)
	if s.cfg.Listen == nil {
		return noWitness()
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	asks := newAsking(w, control, ctx.Done())
	defer asks.close()
	hear, end, err := s.cfg.Listen(req.Host, asks)
	if err != nil {
		return err
	}
	defer end()
	stopped := s.endWith(ctx, func() { _ = control.SetReadDeadline(time.Now()) })
	defer func() { cancel(); <-stopped }()
	lines := bufio.NewScanner(&newsBody{r.Body, control, s.newsTimeout, s.ended})
	lines.Buffer(nil, maxNews)
	large := &turn{places: s.large}
	defer large.end()
	lines.Split(large.splitting(ctx))
	for lines.Scan() {
		news, err := readNews(lines.Bytes())
		large.end()
		if err != nil {
			return err
		}
		if news == nil {
			continue
		}
		if news.Answer != nil {
			asks.answered(news.Answer)
			continue
		}
		hear(news)
	}
	var busy *api.Problem
	err = lines.Err()
	if errors.As(err, &busy) {
		return busy
	}
	if err != nil && !s.isEnding() {
		return invalid("the stream of the engine's events broke off: %v", err)
	}
	return reply(w, api.OK())
}

// readNews reads a line; nil: it is empty.
func readNews(line []byte) (*ipam.EngineNews, error) {
	if len(bytes.TrimSpace(line)) == 0 {
		return nil, nil
	}
	if err := (&count{most: newsThings}).add(line); err != nil {
		return nil, err
	}
	news := new(ipam.EngineNews)
	return news, decode(line, news)
}

// isEnding reports whether the server is ending.
func (s *Server) isEnding() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// newsBody is a body with a time limit for each piece. It ends with the server.
type newsBody struct {
	io.Reader
	control *http.ResponseController
	timeout time.Duration
	ended   <-chan struct{}
}

// Read sets its deadline before it checks whether the server ends. A server that ends closes the channel first and then
// sets its own deadline, so that one stays.
func (b *newsBody) Read(p []byte) (int, error) {
	if err := b.control.SetReadDeadline(time.Now().Add(b.timeout)); err != nil {
		return 0, err
	}
	select {
	case <-b.ended:
		_ = b.control.SetReadDeadline(time.Now())
		return 0, io.EOF
	default:
		return b.Reader.Read(p)
	}
}

// readSeen reads a body with an engine's view. A large one is read alone; done admits the next one.
func (s *Server) readSeen(w http.ResponseWriter, r *http.Request, v any) (done func(), err error) {
	if err := untimed(w); err != nil {
		return nil, err
	}
	r.Body = &patientBody{r.Body, http.NewResponseController(w)}
	done = func() {}
	most := fewThings
	if isAlone(r) {
		select {
		case s.views <- struct{}{}:
			done, most = func() { <-s.views }, maxThings
		default:
			return nil, problem(http.StatusConflict, api.CodeBusy,
				"Berth is still reading the report of another engine; try again in a moment")
		}
	}
	if err = readLarge(r, v, most); err != nil {
		done()
		return nil, err
	}
	return done, nil
}

// isAlone reports whether a body with an engine's view is so large that only one is read at a time.
func isAlone(r *http.Request) bool { return r.ContentLength < 0 || r.ContentLength > api.MaxBody }

// witnessed adds to each lease the container that holds it according to the witness. A memory has no holder.
func (s *Server) witnessed(leases iter.Seq2[ipam.LeaseInfo, error]) iter.Seq2[ipam.LeaseInfo, error] {
	if s.cfg.SeenBy == nil {
		return leases
	}
	return func(yield func(ipam.LeaseInfo, error) bool) {
		for l, err := range leases {
			if err == nil && l.Released.IsZero() {
				l.SeenBy = s.cfg.SeenBy(l.Space, l.Address, l.ID)
			}
			if !yield(l, err) {
				return
			}
		}
	}
}

func noWitness() *api.Problem {
	return problem(http.StatusConflict, api.CodeNoWitness,
		"this daemon has no witness, so it does not know what runs: start it with --docker-host and the address "+
			"of a Docker Engine, such as unix:///run/docker.sock, and try again")
}
