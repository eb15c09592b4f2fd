package admin

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"berth/internal/admin/api"
	"berth/internal/ipam"
)

func (s *Server) version(w http.ResponseWriter, _ *http.Request) error {
	return reply(w, s.cfg.Version)
}

func (s *Server) spaces(w http.ResponseWriter, r *http.Request) error {
	if _, err := query(r); err != nil {
		return err
	}
	all, err := s.cfg.Service.Spaces(r.Context())
	if err != nil {
		return err
	}
	return replyList(w, "spaces", all)
}

// subnets lists all of them, unless a page is asked for.
func (s *Server) subnets(w http.ResponseWriter, r *http.Request) error {
	q, err := query(r, "space", "limit", "after")
	if err != nil {
		return err
	}
	p, err := pageOf(r, q, 2)
	if err != nil {
		return err
	}
	space := q.Get("space")
	if err := s.knowsSpace(r, space); err != nil {
		return err
	}
	afterSpace, after, err := p.placeOf()
	if err != nil {
		return err
	}
	all, err := s.cfg.Service.Subnets(r.Context(), space)
	if err != nil {
		return err
	}
	first, found := slices.BinarySearchFunc(all, after, func(sub ipam.SubnetInfo, after netip.Addr) int {
		return cmp.Or(cmp.Compare(sub.Space, afterSpace), sub.CIDR.Addr().Compare(after))
	})
	if found {
		first++
	}
	if all = all[first:]; !p.paged() {
		return replyList(w, "subnets", all)
	}
	var list api.SubnetList
	list.Subnets, list.Next, err = take(p, yes(all), func(sub *ipam.SubnetInfo) string {
		return cursor(sub.Space, sub.CIDR.Addr().String())
	})
	if err != nil {
		return err
	}
	link(w, r, list.Next)
	return reply(w, list)
}

// leases lists all of them, in a stream, unless a page is asked for.
func (s *Server) leases(w http.ResponseWriter, r *http.Request) error {
	q, err := query(r, "space", "subnet", "address", "remembered", "brief", "limit", "after")
	if err != nil {
		return err
	}
	p, err := pageOf(r, q, 2)
	if err != nil {
		return err
	}
	f := ipam.LeaseFilter{Space: q.Get("space")}
	if f.Remembered, err = boolOf(q, "remembered"); err != nil {
		return err
	}
	isBrief, err := boolOf(q, "brief")
	if err != nil {
		return err
	}
	if text := q.Get("subnet"); text != "" {
		if f.Subnet, err = netip.ParsePrefix(text); err != nil {
			return invalid("the subnet %q is not a prefix such as 10.1.0.0/24", text)
		}
		f.Subnet = f.Subnet.Masked()
	}
	if f.Address, err = addressOf(q); err != nil {
		return err
	}
	if err := s.knowsSubnet(r, f); err != nil {
		return err
	}
	if f.AfterSpace, f.After, err = p.placeOf(); err != nil {
		return err
	}
	all := s.cfg.Service.Leases(r.Context(), f)
	if isBrief {
		return replyLeases(w, r, p, brief(all), func(l *api.BriefLease) string {
			return cursor(l.Space, l.Address.String())
		})
	}
	return replyLeases(w, r, p, s.witnessed(all), func(l *ipam.LeaseInfo) string {
		return cursor(l.Space, l.Address.String())
	})
}

func replyLeases[T any](w http.ResponseWriter, r *http.Request, p page, all iter.Seq2[T, error],
	cursorOf func(*T) string) (err error) {
	if !p.paged() {
		return replyEach(w, "leases", all)
	}
	var list api.LeasesAs[T]
	if list.Leases, list.Next, err = take(p, all, cursorOf); err != nil {
		return err
	}
	link(w, r, list.Next)
	return reply(w, list)
}

// brief is what leases are called by.
func brief(leases iter.Seq2[ipam.LeaseInfo, error]) iter.Seq2[api.BriefLease, error] {
	return func(yield func(api.BriefLease, error) bool) {
		for l, err := range leases {
			if !yield(api.BriefLease{Address: l.Address, Space: l.Space, Network: l.Network}, err) {
				return
			}
		}
	}
}

// knowsSpace refuses a space that is not there: an empty list would say that it is, and holds nothing.
func (s *Server) knowsSpace(r *http.Request, name string) error {
	if name == "" {
		return nil
	}
	all, err := s.cfg.Service.Spaces(r.Context())
	if err != nil {
		return err
	}
	var names []string
	for _, space := range all {
		if space.Name == name {
			return nil
		}
		names = append(names, space.Name)
	}
	if err := s.cfg.Service.Partial(); err != nil {
		return fmt.Errorf("the space %s is none of this host's own: %w", name, err)
	}
	return &api.Problem{Status: http.StatusNotFound, Code: api.CodeNotFound,
		Detail: fmt.Sprintf("there is no space %q; there are %s", name, strings.Join(names, ", "))}
}

func (s *Server) knowsSubnet(r *http.Request, f ipam.LeaseFilter) error {
	if err := s.knowsSpace(r, f.Space); err != nil {
		return err
	} else if !f.Subnet.IsValid() {
		return nil
	}
	all, err := s.cfg.Service.Subnets(r.Context(), f.Space)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(all, func(sub ipam.SubnetInfo) bool { return sub.CIDR == f.Subnet }) {
		return nil
	}
	if err := s.cfg.Service.Partial(); err != nil {
		return fmt.Errorf("the subnet %s is none of this host's own: %w", f.Subnet, err)
	}
	in := ""
	if f.Space != "" {
		in = " in the space " + f.Space
	}
	return &api.Problem{Status: http.StatusNotFound, Code: api.CodeNotFound,
		Detail: fmt.Sprintf("there is no subnet %s%s; `berth subnet ls` lists those that are there", f.Subnet, in)}
}

func (s *Server) saveState(w http.ResponseWriter, r *http.Request) error {
	if _, err := query(r); err != nil {
		return err
	}
	if s.cfg.Save == nil {
		return invalid("this Berth has no file of its state (--store mem), so that there is nothing to write")
	}
	if _, err := untimed(w); err != nil {
		return err
	}
	saved, err := s.cfg.Save(r.Context())
	if err != nil {
		return err
	}
	s.log.WithField("by", callerIn(r.Context()).actor).Warn("the state was written to its place anew")
	return reply(w, saved)
}

func (s *Server) fsck(w http.ResponseWriter, r *http.Request) error {
	if _, err := query(r); err != nil {
		return err
	}
	if _, err := untimed(w); err != nil {
		return err
	}
	var report api.FsckReport
	var err error
	if report.File, err = s.cfg.Fsck(r.Context()); err != nil {
		return err
	}
	if report.Problems, err = s.cfg.Service.Check(r.Context()); err != nil {
		return err
	}
	report.OK = len(report.Problems) == 0 && len(report.File.Problems) == 0
	report.Problems = append([]string{}, report.Problems...) // in JSON a list, not null
	report.File.Problems = append([]string{}, report.File.Problems...)
	return reply(w, report)
}

// query returns the parameters of a request, and refuses one that the operation does not have: a misspelt filter would
// otherwise be a list of everything.
func query(r *http.Request, known ...string) (url.Values, error) {
	if r.URL.RawQuery == "" {
		return nil, nil
	}
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, invalid("the query %q cannot be read: %v", r.URL.RawQuery, err)
	}
	for name, values := range q {
		switch {
		case !slices.Contains(known, name):
			return nil, invalid("%s has no parameter %q; it has %s", r.URL.Path, name, orNone(known))
		case len(values) > 1:
			return nil, invalid("the parameter %q is given %d times; give it once", name, len(values))
		}
	}
	return q, nil
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

func boolOf(q url.Values, name string) (bool, error) {
	switch text := q.Get(name); text {
	case "", "false":
		return false, nil
	case "true":
		return true, nil
	default:
		return false, invalid("the parameter %q is %q; it is true or false", name, text)
	}
}

// dryRun reads the one parameter of what may only be tried.
func dryRun(r *http.Request) (bool, error) {
	q, err := query(r, "dry_run")
	if err != nil {
		return false, err
	}
	return boolOf(q, "dry_run")
}

// numberOf reads a number from 0 to most.
func numberOf(q url.Values, name string, most uint64) (n uint64, given bool, err error) {
	text := q.Get(name)
	if text == "" {
		return 0, false, nil
	}
	n, err = strconv.ParseUint(text, 10, 64)
	if err != nil || n > most {
		return 0, false, invalid("the parameter %q is %q; it is a number from 0 to %d", name, text, most)
	}
	return n, true, nil
}

func timeOf(q url.Values, name string) (time.Time, error) {
	text := q.Get(name)
	if text == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, invalid("the parameter %q is %q; it is a time such as 2026-01-31T08:00:00Z (RFC 3339)",
			name, text)
	}
	return t, nil
}

// reply answers with one JSON object.
func reply(w http.ResponseWriter, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	begin(w, api.JSONType)
	_, _ = w.Write(body) // a client that is gone: the server notices
	_, _ = io.WriteString(w, "\n")
	return nil
}

// replyList answers with an object of one list.
func replyList[T any](w http.ResponseWriter, name string, items []T) error {
	return replyEach(w, name, yes(items))
}

// yes yields the items of a list, without an error.
func yes[T any](items []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, item := range items {
			if !yield(item, nil) {
				return
			}
		}
	}
}

// replyEach answers with an object of one list, which is written item by item: a list may be long, and it need not be
// in memory as a whole. An error after the first item cuts the answer off, so that nobody takes it for a whole one.
func replyEach[T any](w http.ResponseWriter, name string, items iter.Seq2[T, error]) error {
	b := bufio.NewWriterSize(w, 32<<10)
	sep := fmt.Sprintf("{%q:[", name)
	begun := false
	for item, err := range items {
		var text []byte
		if err == nil {
			text, err = json.Marshal(&item)
		}
		switch {
		case err != nil && begun:
			panic(http.ErrAbortHandler)
		case err != nil:
			return err
		case !begun:
			begin(w, api.JSONType)
			begun = true
		}
		fmt.Fprint(b, sep)
		if _, err := b.Write(text); err != nil {
			return nil // the client is gone
		}
		sep = ",\n"
	}
	if !begun {
		begin(w, api.JSONType)
		fmt.Fprint(b, sep)
	}
	fmt.Fprint(b, "]}\n")
	b.Flush()
	return nil
}

func begin(w http.ResponseWriter, contentType string) {
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
}
