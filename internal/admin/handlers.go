package admin

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"berth/internal/admin/api"
	"berth/internal/ipam"
)

// subnets lists all subnets, or a page if one is requested.
func (s *Server) subnets(ctx context.Context, req api.SubnetsRequest) (list api.SubnetList, err error) {
	if err := s.knowsSpace(ctx, req.Space); err != nil {
		return list, err
	}
	afterSpace, after, err := placeOf(req.Cursor)
	if err != nil {
		return list, err
	}
	all, err := s.cfg.Service.Subnets(ctx, req.Space)
	if err != nil {
		return list, err
	}
	first, found := slices.BinarySearchFunc(all, after, func(sub ipam.SubnetInfo, after netip.Addr) int {
		return cmp.Or(cmp.Compare(sub.Space, afterSpace), sub.CIDR.Addr().Compare(after))
	})
	if found {
		first++
	}
	list.Subnets, list.Next, err = take(req.Limit(), yes(all[first:]), func(sub *ipam.SubnetInfo) string {
		return cursor(sub.Space, sub.CIDR.Addr().String())
	})
	return list, err
}

// leases streams all leases, or sends a page if one is requested.
func (s *Server) leases(w http.ResponseWriter, r *http.Request, req api.LeasesRequest) (err error) {
	f := req.LeaseFilter
	if err := s.knowsSubnet(r.Context(), f); err != nil {
		return err
	}
	if f.AfterSpace, f.After, err = placeOf(req.Cursor); err != nil {
		return err
	}
	all := s.cfg.Service.Leases(r.Context(), f)
	if req.Brief {
		return replyLeases(w, r, &req, brief(all), func(l *api.BriefLease) string {
			return cursor(l.Space, l.Address.String())
		})
	}
	return replyLeases(w, r, &req, s.witnessed(all), func(l *ipam.LeaseInfo) string {
		return cursor(l.Space, l.Address.String())
	})
}

func replyLeases[T any](w http.ResponseWriter, r *http.Request, req *api.LeasesRequest, all iter.Seq2[T, error],
	cursorOf func(*T) string) (err error) {
	if req.Whole() {
		return replyEach(w, "leases", all)
	}
	var list api.LeasesAs[T]
	if list.Leases, list.Next, err = take(req.Limit(), all, cursorOf); err != nil {
		return err
	}
	return replyPage(w, r, &list)
}

// brief returns only the fields that identify a lease.
func brief(leases iter.Seq2[ipam.LeaseInfo, error]) iter.Seq2[api.BriefLease, error] {
	return func(yield func(api.BriefLease, error) bool) {
		for l, err := range leases {
			if !yield(api.BriefLease{Address: l.Address, Space: l.Space, Network: l.Network}, err) {
				return
			}
		}
	}
}

// knowsSpace refuses an unknown space. An empty list would suggest that the space exists and is empty.
func (s *Server) knowsSpace(ctx context.Context, name string) error {
	if name == "" {
		return nil
	}
	all, err := s.cfg.Service.Spaces(ctx)
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
		return fmt.Errorf("the space %s is not in this host's own store: %w", name, err)
	}
	return problem(http.StatusNotFound, api.CodeNotFound,
		"there is no space %q; the spaces are %s", name, strings.Join(names, ", "))
}

func (s *Server) knowsSubnet(ctx context.Context, f ipam.LeaseFilter) error {
	if err := s.knowsSpace(ctx, f.Space); err != nil {
		return err
	} else if !f.Subnet.IsValid() {
		return nil
	}
	all, err := s.cfg.Service.Subnets(ctx, f.Space)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(all, func(sub ipam.SubnetInfo) bool { return sub.CIDR == f.Subnet }) {
		return nil
	}
	if err := s.cfg.Service.Partial(); err != nil {
		return fmt.Errorf("the subnet %s is not in this host's own store: %w", f.Subnet, err)
	}
	in := ""
	if f.Space != "" {
		in = " in the space " + f.Space
	}
	return problem(http.StatusNotFound, api.CodeNotFound,
		"there is no subnet %s%s; `berth subnet ls` lists the subnets", f.Subnet, in)
}

func (s *Server) saveState(ctx context.Context, _ api.None) (saved api.SavedState, err error) {
	if s.cfg.Save == nil {
		return saved, invalid("this Berth keeps its state in memory (--store mem), so there is nothing to write")
	}
	if saved, err = s.cfg.Save(ctx); err != nil {
		return saved, err
	}
	s.log.WithField("by", callerIn(ctx).actor).Warn("Berth wrote the state to its file again")
	if saved.Tokens, err = s.cfg.Tokens.Restore(); err != nil {
		err = fmt.Errorf("Berth wrote the state to its file, but %w", err)
	}
	return saved, err
}

func (s *Server) fsck(ctx context.Context, _ api.None) (report api.FsckReport, err error) {
	if report.File, err = s.cfg.Fsck(ctx); err != nil {
		return report, err
	}
	if report.Problems, err = s.cfg.Service.Check(ctx); err != nil {
		return report, err
	}
	report.OK = len(report.Problems) == 0 && len(report.File.Problems) == 0
	report.File.Problems = append([]string{}, report.File.Problems...) // a list in JSON, not null
	return report, nil
}

// reply answers with one JSON object.
func reply(w http.ResponseWriter, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	begin(w, api.JSONType)
	_, _ = w.Write(body) // the server notices a client that is gone
	_, _ = io.WriteString(w, "\n")
	return nil
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

// replyEach answers with an object of one list. It writes item by item, because a list may be long. An error after the
// first item aborts the answer, so that nobody takes it for complete.
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
