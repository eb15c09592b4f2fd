package etcd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"berth/store"
)

// snapshot is everything that is stored, as it was read.
type snapshot struct {
	image
	about  *meta
	others bool            // there are keys that a store has only with its meta, or which are not Berth's
	closed []byte          // what the gate holds where it is closed
	staged map[string]bool // the sessions that have staged something
	counts map[string]uint64
	ownMod int64 // the revision that wrote the count of this handle's host
	last   int64 // the revision of the last change
	place  uint64
}

// pageSize is how many keys are read at a time.
const pageSize = 8192

// load reads everything under the prefix, page by page at one revision. Where the gate is closed it opens it before.
func (s *Store) load(ctx context.Context) (*snapshot, error) {
	for {
		n := &snapshot{image: newImage(), staged: map[string]bool{}, counts: map[string]uint64{}}
		before := s.trace.expected()
		err := s.pages(ctx, n)
		switch {
		case errors.Is(err, rpctypes.ErrCompacted): // while it was read
			continue
		case err != nil:
			return nil, err
		case len(n.closed) == 0:
			return n, s.expected(n, before)
		}
		g, err := parseGate(n.closed)
		if err == nil {
			err = s.finish(ctx, n.gate, g)
		}
		if err != nil {
			return nil, err
		}
	}
}

func (s *Store) pages(ctx context.Context, n *snapshot) error {
	op := getAll(s.layout.prefix)
	r := op.GetRequestRange()
	r.Limit = pageSize
	for {
		page, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
		resp, err := s.members.do(page, op)
		cancel()
		if err != nil {
			return err
		}
		g := resp.Responses[0].GetResponseRange()
		if n.rev == 0 {
			n.rev, n.place = resp.Header.Revision, resp.Header.ClusterId
		}
		for _, kv := range g.Kvs {
			if err := s.sort(n, kv); err != nil {
				return err
			}
		}
		if !g.More || len(g.Kvs) == 0 {
			return nil
		}
		r.Key, r.Revision = append(g.Kvs[len(g.Kvs)-1].Key, 0), n.rev
	}
}

// sort puts one key where it belongs.
func (s *Store) sort(n *snapshot, kv *kv) error {
	place, name := s.layout.split(kv.Key)
	switch place {
	case dataPlace, bundlePlace:
		n.write(nil, place, name, kv)
	case presentPlace, sessionPlace:
		n.stand(place, string(name), kv)
	case countPlace:
		n.counts[string(name)] = countOf(kv.Value)
		if string(name) == s.cfg.Host {
			n.ownMod = kv.ModRevision
		}
	case lastPlace:
		n.last = kv.ModRevision
	case gatePlace:
		n.gate, n.closed = kv.ModRevision, kv.Value
	case stagedPlace:
		session, _, _ := strings.Cut(string(name), "/")
		n.staged[session] = true
	case metaPlace:
		n.about, n.meta = &meta{}, kv.ModRevision
		if json.Unmarshal(kv.Value, n.about) != nil {
			*n.about = meta{} // whatever it is: check says so
		}
		return n.about.check(s.where(s.layout.meta))
	default:
		n.others = n.others || !passing(place)
	}
	return nil
}

// where names a key for a person.
func (s *Store) where(key string) string {
	return fmt.Sprintf("%q in etcd at %s", key, strings.Join(s.cfg.Endpoints, ", "))
}

// errNothing: there is nothing, and a store may be made there.
var errNothing = errors.New("there is no store yet")

// create makes the store where there is nothing.
func (s *Store) create(ctx context.Context) error {
	id := drawn(16)
	if s.cfg.Cluster != "" {
		id = s.cfg.Cluster
	}
	fresh, err := json.Marshal(meta{Program: "berth", Version: format, Cluster: id,
		Created: time.Now().UTC().Format(time.RFC3339)})
	if err != nil {
		return err
	}
	l := &s.layout
	_, err = s.members.txn(ctx, &pb.TxnRequest{
		Compare: []*pb.Compare{modIs(l.meta, 0), unchanged(l.data, end(l.data), 0)},
		Success: []*pb.RequestOp{put(l.meta, fresh)},
	})
	return err
}

// missing is the refusal of an etcd in which there is nothing of the store that was there.
func (s *Store) missing(before store.Trace, place uint64) error {
	before.Revision = max(before.Revision, 1) // the cluster is known, so that there was something
	if err := s.check(found{before: before, place: place, empty: true, counts: map[string]uint64{}}); err != nil {
		return err
	}
	return &store.Back{Why: s.emptied(), Since: time.Now(), Emptied: true} // a handle that mends has looked
}

func (s *Store) emptied() string {
	return fmt.Sprintf("there is nothing under %s, where the cluster %s was: etcd was emptied or lost its data, or "+
		"this is another etcd or prefix", s.where(s.layout.prefix), s.cfg.Cluster)
}

// expected checks that a snapshot is that of the store that was expected.
func (s *Store) expected(n *snapshot, before store.Trace) error {
	nothing := n.about == nil && !n.others && n.tree.Len() == 0
	switch {
	case nothing && (s.cfg.Cluster == "" || s.cfg.Create):
		return errNothing
	case n.about == nil && s.cfg.Cluster == "":
		return fmt.Errorf("%w: there is something under %s that is not Berth's: choose another prefix (--etcd-prefix)",
			errForeign, s.where(s.layout.prefix))
	case n.about == nil:
		return s.missing(before, n.place)
	case s.cfg.Cluster != "" && n.about.Cluster != s.cfg.Cluster:
		return fmt.Errorf("%w: under %s is the cluster %s, and this host belongs to %s: look at --etcd-endpoints and "+
			"--etcd-prefix", errForeign, s.where(s.layout.prefix), n.about.Cluster, s.cfg.Cluster)
	}
	return s.check(found{before: before, place: n.place, rev: n.rev, counts: n.counts})
}

// sweep removes what handles have staged that are gone: what is staged under a session without a marker is never
// committed.
func (s *Store) sweep(ctx context.Context, n *snapshot) error {
	for session := range n.staged {
		_, err := s.members.txn(ctx, &pb.TxnRequest{
			Compare: []*pb.Compare{modIs(s.layout.marker+session, 0), modIs(s.layout.gate, n.gate)},
			Success: []*pb.RequestOp{delAll(s.layout.staged + session + "/")},
		})
		if err != nil {
			return err
		}
	}
	return nil
}
