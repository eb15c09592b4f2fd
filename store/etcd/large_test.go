package etcd

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"berth/store"
)

// many writes n records of some bytes, all with the same content.
func many(n, bytes int, mark string) func(store.Tx) error {
	return func(tx store.Tx) error {
		for i := range n {
			if err := tx.Put(fmt.Appendf(nil, "many/%05d", i), []byte(strings.Repeat(mark, bytes))); err != nil {
				return err
			}
		}
		return tx.Delete([]byte("none"))
	}
}

var errDied = errors.New("died")

// die makes s end in the middle of a large update, after the given step.
func die(s *Store, at string) {
	s.dies = func(step string) error {
		if step != at {
			return nil
		}
		s.cancel()
		s.members.cancel()
		return errDied
	}
}

// A handle dies in the middle of a large update. Before the gate is closed nothing of the update is visible,
// afterwards all of it, through handles that are already open and through those opened later.
func TestLargeDies(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"staged 0", "staged 2", "closed", "applied 0", "applied 1", "applied 2"} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			cfg := patient()
			s, other := open(t, cfg), open(t, cfg)
			update(t, s, many(300, 1, "a"))
			update(t, other, putting("x", "1"))
			f := follow(t, other)
			die(s, step)
			_ = s.Update(context.Background(), many(300, 10000, "b")) // three chunks; the answer does not matter
			update(t, other, func(tx store.Tx) error { return add(tx, "x", 1) })
			want := strings.Repeat("b", 10000)
			if strings.HasPrefix(step, "staged") {
				want = "a"
			}
			for name, h := range map[string]*Store{"the other handle": other, "a new handle": open(t, cfg)} {
				all := everything(t, h)
				for i := range 300 {
					if got := all[fmt.Sprintf("many/%05d", i)]; got != want {
						t.Fatalf("%s: record %d holds %d bytes, %.1s", name, i, len(got), got)
					}
				}
				if got := all["x"]; got != "2" {
					t.Errorf("%s: x is %s", name, got)
				}
			}
			if step == "closed" && f.told != 1 {
				t.Errorf("a large update is told in %d parts", f.told)
			}
			for i := range 300 {
				if f.get(fmt.Sprintf("many/%05d", i)) != want {
					t.Fatalf("the follower was not told of record %d", i)
				}
			}
		})
	}
}

// A view that begins while a large update is applied sees nothing of it, and a handle that is opened after it
// sees all.
func TestLargeSeenWhole(t *testing.T) {
	t.Parallel()
	cfg := patient()
	s, other := open(t, cfg), open(t, cfg)
	update(t, s, many(300, 1, "a"))
	eventually(t, "the other handle has it", func() bool { return value(t, other, "many/00299") == "a" })
	// on a slow machine it may begin to finish the update, and open the gate before this handle has looked
	other.dies = func(string) error { return errDied }
	seen := 0
	s.dies = func(step string) error {
		if !strings.HasPrefix(step, "applied") {
			return nil
		}
		seen++
		tree := other.mirror.copied()
		first, _ := tree.Get(rec{key: []byte("many/00000")})
		last, _ := tree.Get(rec{key: []byte("many/00299")})
		if string(first.value) != "a" || string(last.value) != "a" {
			t.Errorf("behind %s, %.1s and %.1s are seen", step, first.value, last.value)
		}
		return nil
	}
	update(t, s, many(300, 10000, "b"))
	if seen != 3 {
		t.Errorf("the update was applied in %d parts", seen)
	}
	if got := value(t, other, "many/00000"); !strings.HasPrefix(got, "b") {
		t.Errorf("afterwards %.1s is seen", got)
	}
}

// What a dead handle has staged is removed by the next handle that is opened after its marker has expired.
func TestLargeSwept(t *testing.T) {
	t.Parallel()
	cfg := patient()
	s := open(t, cfg)
	die(s, "staged 1")
	_ = s.Update(context.Background(), many(300, 10000, "b"))
	c := rawClient(t, embedded())
	staged := func() int64 {
		g, err := c.Get(context.Background(), s.layout.staged, clientv3.WithPrefix(), clientv3.WithCountOnly())
		if err != nil {
			t.Fatal(err)
		}
		return g.Count
	}
	if staged() == 0 {
		t.Fatal("nothing was staged")
	}
	_ = open(t, cfg).Close()
	if staged() == 0 {
		t.Fatal("what a handle has staged was removed though its marker is there")
	}
	if _, err := c.Revoke(context.Background(), s.commit.marker().lease); err != nil {
		t.Fatal(err)
	}
	_ = open(t, cfg).Close()
	if n := staged(); n != 0 {
		t.Errorf("%d chunks are left", n)
	}
}

func TestChunks(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var all []*write
		for range 1 + r.IntN(20) {
			w := newWrite([]byte(strings.Repeat("k", 1+r.IntN(300))), []byte(strings.Repeat("v", r.IntN(300))))
			if r.IntN(3) == 0 {
				w = &write{key: w.key}
			}
			all = append(all, w)
		}
		var back []*write
		for _, c := range chunks(all, 1+r.IntN(1000)) {
			part, err := parseChunk(c)
			if err != nil {
				t.Fatal(err)
			}
			back = append(back, part...)
		}
		if len(back) != len(all) {
			t.Fatalf("%d writes became %d", len(all), len(back))
		}
		for i := range all {
			if string(all[i].key) != string(back[i].key) || string(all[i].sealed) != string(back[i].sealed) ||
				(all[i].sealed == nil) != (back[i].sealed == nil) {
				t.Fatalf("write %d: %+v became %+v", i, all[i], back[i])
			}
		}
	}
}

func FuzzChunk(f *testing.F) {
	f.Add(chunks([]*write{newWrite([]byte("a"), []byte("b")), {key: []byte("c")}}, 100)[0])
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, chunk []byte) {
		all, err := parseChunk(chunk)
		if err != nil {
			return
		}
		again, err := parseChunk(chunks(all, 1<<30)[0])
		if err != nil || len(again) != len(all) {
			t.Fatalf("%d writes became %d (%v)", len(all), len(again), err)
		}
	})
}
