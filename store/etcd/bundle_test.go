package etcd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"berth/store"
)

// events bundles events, as Berth does.
func events(cfg *Config) { cfg.Bundle = []byte("e") }

// puts writes words: KEY=VALUE, or -KEY to delete it.
func puts(words ...string) func(store.Tx) error {
	return func(tx store.Tx) (err error) {
		for _, word := range words {
			if key, gone := strings.CutPrefix(word, "-"); gone {
				err = errors.Join(err, tx.Delete([]byte(key)))
				continue
			}
			key, value, _ := strings.Cut(word, "=")
			err = errors.Join(err, tx.Put([]byte(key), []byte(value)))
		}
		return err
	}
}

// lying lists the keys under the prefix in etcd: KEY alone, or a bundle's key with the keys of its records.
func lying(t testing.TB, s *Store) []string {
	t.Helper()
	var all []string
	for key, value := range inEtcd(t, s.cfg.Endpoints[0], s.layout.prefix) {
		key = key[len(s.layout.prefix):]
		if name, ok := strings.CutPrefix(key, bundlePlace); ok {
			for _, r := range (&bundle{name: name, chunk: []byte(value)}).records() {
				if r.bad != nil {
					t.Error(r.bad)
				}
				key += " " + string(r.key)
			}
		} else if !strings.HasPrefix(key, dataPlace) {
			continue
		}
		all = append(all, key)
	}
	slices.Sort(all)
	return all
}

// Several new records of the kind are stored under one key. A single new record, and one that is rewritten, have
// their own key. A deleted record is removed from its bundle.
func TestBundles(t *testing.T) {
	t.Parallel()
	cfg := patient()
	events(&cfg)
	s := open(t, cfg)
	cfg.Prefix = s.cfg.Prefix
	for _, step := range []struct {
		words, want string
	}{
		{"a=1 e1=1 e2=2 e3=3 f=1", "b/e1 e1 e2 e3, d/a, d/f"},
		{"e4=4", "b/e1 e1 e2 e3, d/a, d/e4, d/f"},
		{"-e2 -a", "b/e1 e1 e3, d/e4, d/f"},
		{"-e1", "b/e1 e3, d/e4, d/f"},
		{"e1=7 e2=7", "b/e1 e3, d/e1, d/e2, d/e4, d/f"},            // the bundle's name is taken
		{"e6=6 e7=7 -e1", "b/e1 e3, b/e6 e6 e7, d/e2, d/e4, d/f"},  // rewritten records join no bundle
		{"e6=8", "b/e1 e3, b/e6 e7, d/e2, d/e4, d/e6, d/f"},        // rewritten
		{"-e7 e7=9", "b/e1 e3, d/e2, d/e4, d/e6, d/e7, d/f"},       // deleted and rewritten
		{"-e3 e8=1 -e8 e9=1", "d/e2, d/e4, d/e6, d/e7, d/e9, d/f"}, // e8 was never committed
		{"e91=1 e92=1 e93=1 -e9", "b/e91 e91 e92 e93, d/e2, d/e4, d/e6, d/e7, d/f"},
		{"-e91 -e92 -e93 -e2 -e4 -e6 -e7", "d/f"},
	} {
		update(t, s, puts(strings.Fields(step.words)...))
		if got := strings.Join(lying(t, s), ", "); got != step.want {
			t.Errorf("after %s: %s; want %s", step.words, got, step.want)
		}
		if got, want := everything(t, open(t, cfg)), everything(t, s); !maps.Equal(got, want) {
			t.Errorf("after %s a handle that is opened reads %v, and the one that wrote it %v", step.words, got, want)
		}
	}
}

// Two handles write and delete at random, each its own events and both the rest. A third one follows. All of
// them, and a newly opened one, read the same as a map, and each record is stored in one place.
func TestBundlesAtRandom(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(rand.Uint64(), 1))
	cfg := patient()
	events(&cfg)
	writers, reader := []*Store{open(t, cfg), open(t, cfg)}, open(t, cfg)
	f := follow(t, reader)
	want := map[string]string{}
	for n := range 150 {
		who, now := random.IntN(2), map[string]string{}
		var words []string
		for range 1 + random.IntN(8) {
			key := fmt.Sprintf("e%02d.%d", random.IntN(20), who)
			if random.IntN(5) == 0 {
				key = fmt.Sprintf("k%d", random.IntN(5))
			}
			switch {
			case random.IntN(3) == 0:
				words, now[key] = append(words, "-"+key), ""
			default:
				now[key] = fmt.Sprint(n)
				words = append(words, key+"="+now[key])
			}
		}
		update(t, writers[who], puts(words...))
		for key, value := range now {
			if value == "" {
				delete(want, key)
			} else {
				want[key] = value
			}
		}
		if n%10 != 9 {
			continue
		}
		for i, s := range append(writers, reader, open(t, cfg)) {
			if got := everything(t, s); !maps.Equal(got, want) {
				t.Fatalf("round %d: handle %d reads %v; want %v", n, i, got, want)
			}
		}
		eventually(t, "the follower is told of it", func() bool {
			f.mu.Lock()
			defer f.mu.Unlock()
			return maps.Equal(f.data, want)
		})
		keys := strings.Fields(strings.Join(lying(t, reader), " "))
		keys = slices.DeleteFunc(keys, func(k string) bool { return strings.HasPrefix(k, bundlePlace) })
		if len(keys) != len(want) {
			t.Fatalf("round %d: %d records lie as %v", n, len(want), keys)
		}
	}
}

// What a function has read of a bundle must hold at the commit, whether it is a record, a missing record or a
// range. What others add outside does not conflict.
func TestBundlesAreCompared(t *testing.T) {
	t.Parallel()
	// does reads KEY or the range FROM..TO, and puts KEY=VALUE or deletes -KEY.
	does := func(tx store.Tx, words string) (err error) {
		for word := range strings.FieldsSeq(words) {
			if from, to, scans := strings.Cut(word, ".."); scans {
				for _, read := range tx.Scan(store.Range{From: []byte(from), To: []byte(to)}) {
					err = errors.Join(err, read)
				}
			} else if strings.ContainsAny(word, "=-") {
				err = errors.Join(err, puts(word)(tx))
			} else {
				_, read := tx.Get([]byte(word))
				err = errors.Join(err, read)
			}
		}
		return err
	}
	for row := range strings.Lines(strings.TrimSpace(`
		a record that is deleted | e2 | -e2 | again
		a record beside one that is | e1 | -e2 | again
		one that was not there | e8 | e7=1 e8=1 | again
		one that was not there, another | e8 | e81=1 e9=1
		a range that grows | e2..e8 | e1x=1 e5=1 | again
		a range that shrinks | e2..e8 | -e1 -e2 | again
		a range, and what is behind | e..e4 | e5=1 e6=1
		a range of others | d..e | e5=1 e6=1
		all | a..z | e5=1 e6=1 | again
		the oldest that are deleted | e..e2 -e1 | e5=1 e6=1
		what is taken apart twice | -e1 | -e2 | again
		what is taken out of another | -e1 | e5=1 e6=1
		new ones of both | e5=1 e6=1 | e4=1 e51=1
		one that is not there is deleted | -e7 | e6=1 e7=1 | again
		a name that is taken | e5=1 e6=1 | e5=1 e51=1 | again
	`)) {
		c := strings.Split(strings.TrimSpace(row), " | ")
		t.Run(c[0], func(t *testing.T) {
			t.Parallel()
			cfg := patient()
			events(&cfg)
			s, other := open(t, cfg), open(t, cfg)
			update(t, s, puts("e1=1", "e2=1", "e3=1", "n=0"))
			runs := 0
			err := s.Update(context.Background(), func(tx store.Tx) error {
				if runs++; runs == 1 {
					update(t, other, puts(strings.Fields(c[2])...))
				}
				return errors.Join(does(tx, c[1]), tx.Put([]byte("n"), []byte("1")))
			})
			if err != nil || (runs > 1) != (len(c) > 3) {
				t.Errorf("it was run %d times (%v)", runs, err)
			}
			cfg.Prefix = s.cfg.Prefix
			want := everything(t, s)
			for _, h := range []*Store{other, open(t, cfg)} {
				if got := everything(t, h); !maps.Equal(got, want) {
					t.Errorf("one handle reads %v, another one %v", got, want)
				}
			}
		})
	}
}

// A bundle is bounded, and a larger record is stored alone. Deleting a page of records from many bundles does
// not exceed etcd's limits.
func TestBundlesAreBounded(t *testing.T) {
	t.Parallel()
	cfg := patient()
	events(&cfg)
	s := open(t, cfg)
	value := strings.Repeat("v", 1000)
	var first, second []string
	for n := range 1000 {
		first = append(first, fmt.Sprintf("e%04d=%s", n, value))
		second = append(second, fmt.Sprintf("-e%04d", n))
	}
	first[500] = "e0500=" + strings.Repeat("v", 2*bundleBytes)
	update(t, s, puts(first...))
	bundles := 0
	for key, v := range inEtcd(t, embedded(), s.layout.bundles) {
		if bundles++; len(v) > bundleBytes {
			t.Errorf("%s has %d bytes", key, len(v))
		}
	}
	if bundles < 12 || bundles > 40 {
		t.Errorf("there are %d bundles", bundles)
	}
	update(t, s, puts(second[:777]...))
	cfg.Prefix = s.cfg.Prefix
	if got := len(everything(t, open(t, cfg))); got != 223 {
		t.Errorf("%d records are left", got)
	}
	for n := range 100 { // and many small ones
		update(t, s, puts(fmt.Sprintf("e3%02da=1", n), fmt.Sprintf("e3%02db=1", n)))
	}
	update(t, s, func(tx store.Tx) (err error) {
		for n := range 100 {
			err = errors.Join(err, tx.Delete(fmt.Appendf(nil, "e3%02da", n)))
		}
		return err
	})
	if got := len(everything(t, open(t, cfg))); got != 323 {
		t.Errorf("%d records are left", got)
	}
}

// If a bundle or one of its records cannot be read, only reads of it fail. It can be deleted.
func TestBundleDamaged(t *testing.T) {
	t.Parallel()
	cfg := patient()
	events(&cfg)
	s := open(t, cfg)
	update(t, s, puts("a=1", "e1=1", "e2=2", "e3=3"))
	chunk := []byte(inEtcd(t, embedded(), s.layout.bundles)[s.layout.bundles+"e1"])
	flipped := bytes.Clone(chunk)
	flipped[len(flipped)-1] ^= 1
	for _, c := range []struct {
		name   string
		chunk  []byte
		hurt   string
		others string // a record that is still read
	}{
		{"one record", flipped, "e3", "e1"},
		{"cut", chunk[:len(chunk)-2], "e1", "a"},
		{"of no sense", []byte("\xff\xff\xff"), "e1", "a"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c2 := rawClient(t, embedded())
			if _, err := c2.Put(t.Context(), s.layout.bundles+"e1", string(c.chunk)); err != nil {
				t.Fatal(err)
			}
			if _, err := c2.Put(t.Context(), s.layout.last, ""); err != nil { // as each writer does
				t.Fatal(err)
			}
			again := cfg
			again.Prefix = s.cfg.Prefix
			for _, h := range []*Store{s, open(t, again)} {
				err := h.View(t.Context(), func(tx store.Tx) error { _, err := tx.Get([]byte(c.hurt)); return err })
				if !errors.Is(err, store.ErrCorrupt) || !strings.Contains(err.Error(), "e") {
					t.Errorf("%s: %v", c.hurt, err)
				}
				if got := value(t, h, c.others); got != "1" {
					t.Errorf("%s is %q", c.others, got)
				}
			}
		})
	}
	update(t, s, puts("-e1"))
	if got := lying(t, s); !slices.Equal(got, []string{"d/a"}) {
		t.Errorf("what is left: %v", got)
	}
}
