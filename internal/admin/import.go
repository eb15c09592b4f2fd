package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"runtime/debug"
	"time"

	"berth/internal/admin/api"
	"berth/internal/ipam"
)

// importPause is the minimum time between two progress lines of an import.
const importPause = 100 * time.Millisecond

// bounded limits the size of bodies, and the number of large bodies at a time.
func (s *Server) bounded(next http.Handler) http.Handler {
	limits := map[string]int64{}
	for _, row := range s.routes() {
		limits[row.Path] = max(limits[row.Path], row.Limit())
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		most := cmp.Or(limits[r.URL.Path], api.MaxBody)
		if most == api.Endless { // each line has its own limit
			next.ServeHTTP(w, r)
			return
		}
		if r.ContentLength > most {
			s.refuse(w, r, bodyTooLarge(most))
			return
		}
		places := s.large
		if r.URL.Path == api.PostImport.Path || most > api.MaxBody && isAlone(r) {
			places = make(chan struct{}, 1) // no wait: another limit admits one at a time
		}
		body := &turnBody{ReadCloser: http.MaxBytesReader(w, r.Body, most), turn: &turn{places: places},
			ctx: r.Context()}
		defer body.end()
		r.Body = body
		next.ServeHTTP(w, r)
		if body.read > api.MaxBody {
			debug.FreeOSMemory() // its memory is garbage now, and the next one may not come soon
		}
	})
}

func (s *Server) importPlan(w http.ResponseWriter, r *http.Request, req api.ImportRequest) error {
	return s.importing(w, r, func(ctx context.Context, progress func(int, int)) (ipam.ImportReport, error) {
		var p ipam.Plan
		if err := readLarge(r, &p, maxThings, fewNetworks()); err != nil {
			return ipam.ImportReport{}, err
		}
		return s.cfg.Service.Import(ctx, p, ipam.ImportOptions{DryRun: req.DryRun, Progress: progress})
	})
}

// importing runs an import and streams its progress.
func (s *Server) importing(w http.ResponseWriter, r *http.Request,
	run func(context.Context, func(done, total int)) (ipam.ImportReport, error)) error {
	control := http.NewResponseController(w)
	r.Body = &patientBody{r.Body, control}
	lines := &importLines{w: w, control: control}
	report, err := s.alone(r.Context(), func(ctx context.Context) (ipam.ImportReport, error) {
		return run(ctx, lines.progress)
	})
	switch {
	case err != nil && !lines.begun:
		return err
	case err != nil:
		lines.send(api.ImportLine{Problem: shortened(problemOf(err))})
	default:
		lines.send(api.ImportLine{Report: &report})
	}
	return nil
}

// alone runs one import at a time, which also bounds the memory for plans. The import ends with its client or the
// server.
func (s *Server) alone(ctx context.Context,
	run func(context.Context) (ipam.ImportReport, error)) (ipam.ImportReport, error) {
	select {
	case s.imports <- struct{}{}:
		defer func() { <-s.imports }()
	default:
		return ipam.ImportReport{}, problem(http.StatusConflict, api.CodeBusy,
			"another import is running; try again when it has ended")
	}
	ctx, end := s.whileServing(ctx)
	defer end()
	return run(ctx)
}

// patientBody is a body whose client has stallTimeout for each piece.
type patientBody struct {
	io.ReadCloser
	control *http.ResponseController
}

func (b *patientBody) Read(p []byte) (int, error) {
	if err := b.control.SetReadDeadline(time.Now().Add(stallTimeout)); err != nil {
		return 0, err
	}
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		_ = b.control.SetReadDeadline(time.Time{}) // from here on, a read only waits until the client goes
	}
	return n, err
}

// importLines is the streamed answer of an import.
type importLines struct {
	w       http.ResponseWriter
	control *http.ResponseController
	begun   bool
	said    time.Time
	gone    bool // the client does not read any more; the server ends the import
}

func (l *importLines) progress(done, total int) {
	now := time.Now()
	if !l.begun || now.Sub(l.said) >= importPause {
		l.said = now
		l.send(api.ImportLine{Done: done, Total: total})
	}
}

func (l *importLines) send(line api.ImportLine) {
	if l.gone {
		return
	}
	if !l.begun {
		l.begun = true
		begin(l.w, api.LinesType)
	}
	text, err := json.Marshal(line)
	if err == nil {
		_, err = (&patient{l.w, l.control}).Write(append(text, '\n'))
	}
	if err == nil {
		err = l.control.Flush()
	}
	l.gone = err != nil
}
