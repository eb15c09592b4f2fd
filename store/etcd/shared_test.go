package etcd

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"berth/store"
)

func add(tx store.Tx, key string, d int) error {
	v, err := tx.Get([]byte(key))
	if err != nil {
		return err
	}
	n, _ := strconv.Atoi(string(v))
	return tx.Put([]byte(key), []byte(strconv.Itoa(n+d)))
}

// eventually waits until ok answers true.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within 20 s: %s", what)
		}
	}
}

func TestTwoHandlesCount(t *testing.T) {
	prefix := freshPrefix()
	var handles []*Store
	for range 2 {
		handles = append(handles, open(t, Config{Prefix: prefix}))
	}
	follower := map[string]string{}
	var mu sync.Mutex
	err := handles[1].Follow(context.Background(), func(store.Tx) error { return nil }, func(all []store.Foreign) {
		mu.Lock()
		defer mu.Unlock()
		for _, f := range all {
			follower[string(f.Key)] = string(f.After)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for h, s := range handles {
		for w := range 4 {
			wg.Go(func() {
				for range 25 {
					err := s.Update(context.Background(), func(tx store.Tx) error {
						if err := tx.Put(fmt.Appendf(nil, "h%d/%d", h, w), nil); err != nil {
							return err
						}
						return add(tx, "n", 1)
					})
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	wg.Wait()
	for _, s := range handles {
		_ = s.View(context.Background(), func(tx store.Tx) error {
			if v, err := tx.Get([]byte("n")); string(v) != "200" {
				t.Errorf("n is %s (%v)", v, err)
			}
			return nil
		})
		t.Logf("%+v", s.Counts())
	}
	handles[0].Announce("zero", []byte("a"))
	eventually(t, "presence", func() bool { return string(handles[1].Present()["zero"]) == "a" })
	_ = handles[0].Close()
	eventually(t, "absence", func() bool { return len(handles[1].Present()) == 0 })
}
