package etcd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"berth/store"
)

// snapshot is the whole content of the store, as it was read.
type snapshot struct {
	image
	about  *meta
	others bool            // there are keys that belong to a store with meta, or that are not Berth's
	closed []byte          // the value of a closed gate
	staged map[string]bool // sessions with staged chunks
	counts map[string]uint64
	ownMod int64 // the revision that wrote the count of this handle's host
	last   int64 // the revision of the last change
	place  uint64
}

// pageSize is how many keys are read at a time.
const pageSize = 8192

// load reads everything under the prefix, in pages, at one revision. It first opens a closed gate.
func (s *Store) load(ctx context.Context) (*snapshot, error) {
	for {
		n := &snapshot{image: newImage(), staged: map[string]bool{}, counts: map[string]uint64{}}
		f := s.trace.expected()
		err := s.pages(ctx, n)
		switch {
		case errors.Is(err, rpctypes.ErrCompacted): // during the read
			continue
		case err != nil:
			return nil, err
		case len(n.closed) == 0:
			return n, s.expected(n, f)
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

// sort puts one key into its part of the snapshot.
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
			*n.about = meta{} // check refuses it
		}
		return n.about.check(s.where(s.layout.meta))
	default:
		n.others = n.others || !passing(place)
	}
	return nil
}

// where names a key for people.
func (s *Store) where(key string) string {
	return fmt.Sprintf("%q in etcd at %s", key, strings.Join(s.cfg.Endpoints, ", "))
}

// ErrNothing means that there is no store, and Open may create one.
var ErrNothing = errors.New("there is no store yet")

// create creates the store under an empty prefix.
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

// missing is the error if nothing of a known store is left.
func (s *Store) missing(f found) error {
	f.before.Revision = max(f.before.Revision, 1) // the cluster is known, so there was something
	f.empty, f.counts = true, map[string]uint64{}
	if err := s.check(f); err != nil {
		return err
	}
	return &store.Back{Why: s.emptied(), Since: time.Now(), Emptied: true} // a handle that mends has looked already
}

func (s *Store) emptied() string {
	return fmt.Sprintf("nothing is left under %s, where the cluster %s was: etcd was emptied or lost its data, or "+
		"this is another etcd or prefix", s.where(s.layout.prefix), s.cfg.Cluster)
}

// expected checks that a snapshot is of the expected store.
func (s *Store) expected(n *snapshot, f found) error {
	f.place, f.rev, f.counts = n.place, n.rev, n.counts
	nothing := n.about == nil && !n.others && n.tree.Len() == 0
	switch {
	case nothing && (s.cfg.Cluster == "" || s.cfg.Create):
		return ErrNothing
	case n.about == nil && s.cfg.Cluster == "":
		return fmt.Errorf("%w: the data under %s is not from Berth: choose another prefix (--etcd-prefix)",
			errForeign, s.where(s.layout.prefix))
	case n.about == nil:
		return s.missing(f)
	case s.cfg.Cluster != "" && n.about.Cluster != s.cfg.Cluster:
		return fmt.Errorf("%w: the data under %s belongs to the cluster %s, but this host belongs to the cluster %s: "+
			"check --etcd-endpoints and --etcd-prefix", errForeign, s.where(s.layout.prefix), n.about.Cluster,
			s.cfg.Cluster)
	}
	return s.check(f)
}

// sweep removes the staged chunks of handles that have ended. What is staged under a session without a marker is never
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

// reload reads everything again, because the watch has missed something, and reports the differences to the follower.
func (s *Store) reload() error {
	if err := s.turn.take(s.ctx); err != nil {
		return err
	}
	defer s.turn.give()
	n, err := s.load(s.ctx)
	if err == nil && s.trace.distrusted() != nil { // the handle may have lost its marker, too
		err = s.mark(s.ctx)
	}
	s.reach.read(err)
	if err != nil {
		return err
	}
	before := s.mirror.copied()
	if s.own != nil { // the follower knows this, even if etcd has lost it
		for _, w := range s.own.wrote {
			if w.value == nil {
				before.Delete(rec{key: w.key})
			} else {
				before.Set(rec{key: w.key, value: w.value})
			}
		}
	}
	s.own = nil
	s.Forgotten()
	all := differences(before, n.tree)
	s.mirror.set(n.image)
	s.feed.rev, s.feed.held = n.rev, nil
	// A backup that was put in etcd's place may have fewer revisions.
	s.answered.Store(min(s.answered.Load(), n.rev))
	s.commit.floor.Store(min(s.commit.floor.Load(), n.rev))
	s.tell(all)           // first, as in publish: a new watch must find the changes in the follower's index
	s.trace.loadedFrom(n) // then it is trusted again: until here the follower has the state that etcd lost
	s.watches.Interrupt(fmt.Errorf("%w: the connection to etcd was lost for so long that changes were missed",
		store.ErrLagged))
	return nil
}

// differences returns the changes from before to after, in the order of the keys.
func differences(before, after *tree) []change {
	var all []change
	before.Scan(func(r rec) bool {
		if now, _ := after.Get(r); now.value == nil || !bytes.Equal(now.value, r.value) {
			all = append(all, change{key: r.key, before: r.value, after: now.value})
		}
		return true
	})
	after.Scan(func(r rec) bool {
		if _, found := before.Get(r); !found {
			all = append(all, change{key: r.key, after: r.value})
		}
		return true
	})
	slices.SortFunc(all, byKey)
	return all
}
