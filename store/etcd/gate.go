package etcd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"berth/store"
)

// A batch that is too large for one transaction of etcd uses the gate. Its writes are first staged under keys that
// nobody reads. Then one transaction compares what the batch has read and closes the gate; with that the batch is
// committed. While the gate is closed nobody else can commit, because each transaction compares it. The staged writes
// are applied, and the gate is opened. Mirrors hold back what is written between. Any handle that finds the gate closed
// for too long continues the work.
//
// A batch that collided too often closes the gate as well, with nothing staged. Then nobody can come before it again,
// and the transaction that commits it opens the gate.

// gateValue is the value of the key gate while the gate is closed.
type gateValue struct {
	Staged string `json:"staged,omitempty"` // the prefix of the chunks' keys
	Chunks int    `json:"chunks"`           // 0: the gate is closed for a batch that is not committed yet
}

// gatePatience is how long a closed gate may make no progress before another handle continues the work.
const gatePatience = 500 * time.Millisecond

// writeLarge commits a batch that does not fit one transaction.
func (s *Store) writeLarge(ctx context.Context, b *batch, l limit) verdict {
	g, err := s.stage(ctx, b, s.commit.marker(), l.bytes)
	switch {
	case s.sizes.lower(err, l):
		s.unstage(ctx, g)
		return verdict{}
	case err != nil:
		return verdict{err: err}
	}
	v := s.sendBatch(ctx, b, l, g.String())
	if !v.committed {
		if !errors.Is(v.err, store.ErrUnknown) {
			s.unstage(ctx, g)
		}
		return v
	}
	err = s.step("closed")
	if err == nil {
		err = s.finish(s.ctx, s.commit.floor.Load(), g)
	}
	if v.full = err; err != nil {
		s.log.Warnf("a large update is committed but cannot be finished yet (%v): the first host that reaches etcd "+
			"finishes it", err)
	}
	return v
}

// stage writes the chunks of b for finish.
func (s *Store) stage(ctx context.Context, b *batch, m marker, size int) (gateValue, error) {
	s.commit.stages++
	parts := chunks(b.laid.writes, size)
	session := strings.TrimPrefix(m.key, s.layout.marker)
	g := gateValue{Staged: s.layout.staged + session + "/" + strconv.Itoa(s.commit.stages) + "/", Chunks: len(parts)}
	for n, part := range parts {
		if _, err := s.members.do(ctx, put(g.chunk(n), part)); err != nil {
			return g, err
		}
		if err := s.step("staged " + strconv.Itoa(n)); err != nil {
			return g, err
		}
	}
	return g, nil
}

func (g gateValue) chunk(n int) string { return g.Staged + strconv.Itoa(n) }

func (g gateValue) String() string {
	text, _ := json.Marshal(g) // it never fails
	return string(text)
}

func parseGate(value []byte) (gateValue, error) {
	var g gateValue
	if err := json.Unmarshal(value, &g); err != nil {
		return g, fmt.Errorf("%w: the record of an unfinished large update has the value %q", store.ErrCorrupt, value)
	}
	return g, nil
}

// unstage removes chunks that are not needed. If that fails, sweep removes them, long after their handle has ended.
func (s *Store) unstage(ctx context.Context, g gateValue) {
	_, _ = s.members.do(ctx, delAll(g.Staged))
}

// lock closes the gate for a batch that is about to run, and waits until the mirror has everything before that. It
// returns 0 if another handle was faster.
func (s *Store) lock(ctx context.Context) (closed int64, err error) {
	s.mirror.mu.Lock()
	open := s.mirror.gate
	s.mirror.mu.Unlock()
	r := &pb.TxnRequest{
		Compare: []*pb.Compare{modIs(s.layout.gate, open)},
		Success: []*pb.RequestOp{put(s.layout.gate, []byte(gateValue{}.String())), get(s.layout.last)},
	}
	resp, _, err := s.members.txnOnce(ctx, r)
	switch {
	case err != nil:
		err = s.members.explain(err)
		s.reach.bad(err)
		return 0, err
	case !resp.Succeeded:
		return 0, nil
	}
	closed = resp.Header.Revision
	if err := s.step("locked"); err != nil {
		return 0, err
	}
	if s.mirror.wait(ctx, modOf(kvsOf(resp, 1))) != nil {
		s.unlock(closed)
		return 0, s.awayError()
	}
	return closed, nil
}

// unlock opens the gate that was closed for a batch that was not committed. If that fails, others do it.
func (s *Store) unlock(closed int64) {
	ctx, cancel := context.WithTimeout(s.ctx, s.cfg.Timeout/3)
	defer cancel()
	_ = s.finish(ctx, closed, gateValue{})
}

// finish applies the staged writes of the gate that was closed in the revision closed, and opens the gate. Several
// handles may do so at once, because each step may happen twice with the same result.
func (s *Store) finish(ctx context.Context, closed int64, g gateValue) error {
	for n := range g.Chunks {
		resp, err := s.behindGate(ctx, closed, get(g.chunk(n)))
		if err != nil || resp == nil {
			return err
		}
		kvs := kvsOf(resp, 0)
		if len(kvs) == 0 {
			return fmt.Errorf("%w: %s, part of a committed update, is missing: restore etcd from "+
				"a backup", store.ErrCorrupt, s.where(g.chunk(n)))
		}
		all, err := parseChunk(kvs[0].Value)
		if err != nil {
			return fmt.Errorf("%w: %s: %w", store.ErrCorrupt, s.where(g.chunk(n)), err)
		}
		if open, err := s.applyAll(ctx, closed, all); err != nil || open {
			return err
		}
		if err := s.step("applied " + strconv.Itoa(n)); err != nil {
			return err
		}
	}
	ops := []*pb.RequestOp{put(s.layout.gate, nil)}
	if g.Chunks > 0 {
		ops = append(ops, put(s.layout.last, nil), delAll(g.Staged))
	}
	_, err := s.behindGate(ctx, closed, ops...)
	return err
}

// applyAll writes behind the closed gate. If etcd refuses the writes as too many or too large, it writes one half after
// the other. open reports that the gate was opened meanwhile, so everything is done.
func (s *Store) applyAll(ctx context.Context, closed int64, all []*write) (open bool, err error) {
	ops := []*pb.RequestOp{put(s.layout.last, nil), put(s.layout.gone, nil)}
	for _, w := range all {
		ops = append(ops, s.layout.op(w))
	}
	resp, err := s.behindGate(ctx, closed, ops...)
	if half := len(all) / 2; half > 0 && isTooMuch(err) {
		if open, err := s.applyAll(ctx, closed, all[:half]); err != nil || open {
			return open, err
		}
		return s.applyAll(ctx, closed, all[half:])
	}
	return err == nil && resp == nil, err
}

// behindGate sends operations that may be repeated, if the gate is still closed since the revision closed. It returns
// nil if the gate was opened meanwhile.
func (s *Store) behindGate(ctx context.Context, closed int64, ops ...*pb.RequestOp) (*pb.TxnResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	r := &pb.TxnRequest{Compare: []*pb.Compare{modIs(s.layout.gate, closed)}, Success: ops}
	s.sizes.now().group(r)
	resp, err := s.members.txn(ctx, r)
	if err != nil || !resp.Succeeded {
		return nil, err
	}
	return resp, nil
}

// rollForward finishes the work of a closed gate, if nobody else has done so for some time.
func (s *Store) rollForward(ctx context.Context, shut *shut) {
	if time.Since(shut.moved) < gatePatience {
		return
	}
	err := s.finish(ctx, shut.closed, shut.value)
	if err != nil && ctx.Err() == nil {
		s.log.Errorf("cannot finish a large write to etcd that another host began: %v", err)
	}
}
