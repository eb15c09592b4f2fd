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
	clientv3 "go.etcd.io/etcd/client/v3"
)

// snapshot is everything that is stored, as of one revision.
type snapshot struct {
	rev     int64
	meta    *meta
	metaMod int64
	others  bool // there are keys, and none of them is meta
	tree    *tree
	gate    int64
	closed  []byte          // what the gate holds where it is closed
	staged  map[string]bool // the sessions that have staged something
	markers map[string]bool
	present map[string][]byte
}

// pageSize is how many keys are read at a time.
const pageSize = 8192

// load reads everything under the prefix, page by page at one revision. Where the gate is closed it opens it before.
func (s *Store) load(ctx context.Context) (*snapshot, error) {
	for {
		n := &snapshot{tree: newTree(), staged: map[string]bool{}, markers: map[string]bool{}, present: map[string][]byte{}}
		err := s.pages(ctx, n)
		switch {
		case errors.Is(err, rpctypes.ErrCompacted): // while it was read
			continue
		case err != nil:
			return nil, err
		case len(n.closed) == 0:
			return n, s.expected(n)
		}
		g, err := parseGate(n.closed)
		if err == nil {
			err = s.finish(ctx, n.gate, g, nil)
		}
		if err != nil {
			return nil, err
		}
	}
}

func (s *Store) pages(ctx context.Context, n *snapshot) error {
	from, to := s.layout.prefix, end(s.layout.prefix)
	for {
		var g *clientv3.GetResponse
		page, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
		err := s.members.ask(page, func(ctx context.Context, c *clientv3.Client) (err error) {
			g, err = c.Get(ctx, from, clientv3.WithRange(to), clientv3.WithLimit(pageSize), clientv3.WithRev(n.rev))
			return err
		})
		cancel()
		if err != nil {
			return err
		}
		if n.rev == 0 {
			n.rev = g.Header.Revision
		}
		for _, kv := range g.Kvs {
			if err := s.sort(n, kv); err != nil {
				return err
			}
		}
		if !g.More || len(g.Kvs) == 0 {
			return nil
		}
		from = string(g.Kvs[len(g.Kvs)-1].Key) + "\x00"
	}
}

// sort puts one key where it belongs.
func (s *Store) sort(n *snapshot, kv *kv) error {
	key, l := string(kv.Key), &s.layout
	switch {
	case strings.HasPrefix(key, l.data):
		r := rec{key: kv.Key[len(l.data):], mod: kv.ModRevision}
		r.value, r.bad = unseal(r.key, kv.Value)
		n.tree.Load(r)
	case strings.HasPrefix(key, l.present):
		n.present[key[len(l.present):]] = kv.Value
	case key == l.gate:
		n.gate, n.closed = kv.ModRevision, kv.Value
	case strings.HasPrefix(key, l.staged):
		session, _, _ := strings.Cut(key[len(l.staged):], "/")
		n.staged[session] = true
	case strings.HasPrefix(key, l.marker):
		n.markers[key[len(l.marker):]] = true
	case key == l.meta:
		n.meta, n.metaMod = &meta{}, kv.ModRevision
		if json.Unmarshal(kv.Value, n.meta) != nil {
			*n.meta = meta{} // whatever it is: check says so
		}
		return n.meta.check(s.where(l.meta))
	}
	n.others = true
	return nil
}

// where names a key for a person.
func (s *Store) where(key string) string {
	return fmt.Sprintf("%q in etcd at %s", key, strings.Join(s.cfg.Endpoints, ", "))
}

// found makes the store where there is none, and checks that the one there is the one expected.
func (s *Store) found(ctx context.Context) error {
	l := &s.layout
	id := drawn(16)
	if s.cfg.Create && s.cfg.Cluster != "" {
		id = s.cfg.Cluster
	}
	fresh, err := json.Marshal(meta{Program: "berth", Version: Format, Cluster: id, Created: time.Now().UTC().Format(time.RFC3339)})
	if err != nil {
		return err
	}
	var g *clientv3.GetResponse
	err = s.members.ask(ctx, func(ctx context.Context, c *clientv3.Client) (err error) {
		g, err = c.Get(ctx, l.prefix, clientv3.WithPrefix(), clientv3.WithLimit(1), clientv3.WithKeysOnly())
		return err
	})
	if err != nil || len(g.Kvs) > 0 {
		return err
	}
	if s.cfg.Cluster != "" && !s.cfg.Create {
		return s.missing()
	}
	return s.members.ask(ctx, func(ctx context.Context, c *clientv3.Client) error {
		_, err := c.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(l.prefix).WithPrefix(), "<", int64(1))).Then(clientv3.OpPut(l.meta, string(fresh))).Commit()
		return err
	})
}

func (s *Store) missing() error {
	return fmt.Errorf("%w: there is nothing under %s, where the cluster %s was: look whether etcd lost its data, or whether this is another etcd or prefix", ErrForeign, s.where(s.layout.prefix), s.cfg.Cluster)
}

// expected checks that a snapshot is that of the store that was expected.
func (s *Store) expected(n *snapshot) error {
	switch {
	case n.meta == nil && n.others:
		return fmt.Errorf("%w: there is something under %s that is not Berth's: choose another prefix (--etcd-prefix)", ErrForeign, s.where(s.layout.prefix))
	case n.meta == nil:
		return s.missing()
	case s.cfg.Cluster != "" && n.meta.Cluster != s.cfg.Cluster:
		return fmt.Errorf("%w: under %s is the cluster %s, and this host belongs to %s: look at --etcd-endpoints and --etcd-prefix", ErrForeign, s.where(s.layout.prefix), n.meta.Cluster, s.cfg.Cluster)
	}
	return nil
}

// sweep removes what handles have staged that are gone: what is staged under a session without a marker is never committed.
func (s *Store) sweep(ctx context.Context, n *snapshot) error {
	for session := range n.staged {
		if n.markers[session] {
			continue
		}
		prefix := s.layout.staged + session + "/"
		r := &pb.TxnRequest{
			Compare: []*pb.Compare{modIs(s.layout.marker+session, 0), modIs(s.layout.gate, n.gate)},
			Success: []*pb.RequestOp{del(prefix, end(prefix))},
		}
		err := s.members.ask(ctx, func(ctx context.Context, c *clientv3.Client) error {
			_, err := pb.NewKVClient(c.ActiveConnection()).Txn(ctx, r)
			return rpctypes.Error(err)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
