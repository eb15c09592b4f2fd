package rollout

import (
	"errors"
	"slices"
	"sync"
	"testing"
)

// TestSeveral: no more run at once than the limit, and none begins after a failure.
func TestSeveral(t *testing.T) {
	all := []*Instance{{Number: 1}, {Number: 2}, {Number: 3}, {Number: 4}, {Number: 5}}
	var mu sync.Mutex
	var now, most int
	var both sync.WaitGroup // the first two run at once
	both.Add(2)
	err := several(all, 2, func(one *Instance) error {
		mu.Lock()
		now++
		most = max(most, now)
		mu.Unlock()
		if one.Number <= 2 {
			both.Done()
			both.Wait()
		}
		mu.Lock()
		now--
		mu.Unlock()
		return nil
	})
	if err != nil || most != 2 {
		t.Errorf("%d at once, %v", most, err)
	}
	var did []int
	broken := errors.New("broken")
	err = several(all, 1, func(one *Instance) error {
		did = append(did, one.Number)
		if one.Number == 3 {
			return broken
		}
		return nil
	})
	if !errors.Is(err, broken) || !slices.Equal(did, []int{1, 2, 3}) {
		t.Errorf("begun are %v, %v", did, err)
	}
}
